"""Write the catalogue into files: certificates of both ends, and schemes in three formats.

    python -m experiments.optimal.export FOLDER [NAME ...]

A tensor's files have its name, with ``_`` for what a file's name shouldn't have. `capacity verify
CERTIFICATE NAME` and `capacity verify SCHEME NAME` check them. An upper end by an argument without
terms, such as an exact decomposition near a numerical one, has no scheme.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from capacity.errors import InvalidArgumentError
from capacity.rank import save_certificates, write_decomposition
from capacity.rank.factors import factors_of
from capacity.tensor import named_tensor
from experiments.common.harness import committed
from experiments.optimal.run import certificates_of

# the second one is for tensors of order three
FORMATS = (".json", ".sms", ".npz")


def export(folder: Path, names: list[str] | None = None) -> list[Path]:
    """Write the files of some tensors, or of all, and return their paths."""
    table = committed("optimal", "tensors")
    unknown = set(names or ()) - set(table["name"])
    if unknown:
        raise SystemExit(f"The catalogue has no tensor {', '.join(sorted(unknown))}.")
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for row in table[table["name"].isin(names or table["name"])].to_dict("records"):
        base = re.sub(r"[^\w-]+", "_", row["name"]).strip("_")
        ends = certificates_of(row)
        written.append(folder / f"{base}.certificates.json")
        save_certificates(ends, written[-1])
        tensor = named_tensor(row["name"])
        try:
            factors = factors_of(ends[1].arguments, tensor)
            for suffix in FORMATS:
                if suffix == ".sms" and tensor.order != 3:
                    continue
                written += write_decomposition(factors, folder / f"{base}{suffix}")
        except InvalidArgumentError as error:
            print(f"{row['name']}: {error}")
    return written


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Certificates and schemes of the catalogue.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="such as matrices:3x3x3; all if omitted")
    options = parser.parse_args()
    print(f"{len(export(options.folder, options.names))} files in {options.folder}")


if __name__ == "__main__":
    main()
