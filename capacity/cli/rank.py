"""The command ``capacity rank``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from capacity.cli.output import File, FormatOption, Json, MultiOption, print_json
from capacity.progress import spinner
from capacity.rank.effort import Effort


def rank(
    file: File,
    format: FormatOption = None,
    multi: MultiOption = None,
    effort: Annotated[
        Effort, typer.Option(help="Search effort: on small databases about 1 s, 30 s, or minutes.")
    ] = "quick",
    seed: Annotated[
        int, typer.Option(help="Seed of the searches and fits.", min=0, max=2**32 - 1)
    ] = 0,
    effective: Annotated[
        bool,
        typer.Option("--effective", help="Also bound the effective rank (Wong 2025, section 2.1)."),
    ] = False,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate", help="Also estimate the rank by CP decompositions (dense, slower)."
        ),
    ] = False,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            help="Restrict the search to this method, named as in explanations; repeatable."
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the certificates of the bounds to this JSON file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Bound the rank of a database from both sides.

    Example: capacity rank examples/countries.ttl --certificate rank.json
    """
    from capacity.database.io.readers import load
    from capacity.rank.analysis import RankAnalysis

    db = load(file, format=format, multi=multi)
    with spinner(f"bounding the rank of {db.n_triples} facts") as say:
        analysis = RankAnalysis(
            db,
            effort=effort,
            seed=seed,
            methods=methods,
            progress=lambda what, _done, _total, _left: say(what),
        )
        b, intervals = analysis.bounds, {"rank": analysis.rank}
        if effective:
            found = analysis.effective_rank
            # a lower bound of the effective rank may have raised that of the rank
            intervals = {"rank": analysis.rank, "effective_rank": found}
    interrupted = any(interval.interrupted for interval in intervals.values())
    fit = None
    if estimate and not interrupted:
        from capacity.rank.cp.estimate import cp_estimate

        with spinner("fitting CP decompositions"):
            fit = cp_estimate(db, seed=seed)
    if certificate is not None:
        from capacity.rank.verifier.serialization import save_certificates

        save_certificates(
            (end for i in intervals.values() for end in (i.lower, i.upper)), certificate
        )
    k, q, v = db.shape
    result: dict[str, Any] = {
        "source": db.source.name if db.source else None,
        "sha256": db.source.sha256 if db.source else None,
        "facts_sha256": db.facts_sha256,
        "multi": db.multi,
        "triples": db.n_triples,
        "subjects": k,
        "predicates": q,
        "objects": v,
        "functional": db.is_functional,
        "multi_valued_pairs": db.n_multi_valued_pairs,
        "bounds": {
            "triples": b.triples,
            "subject_slices": b.slices[0],
            "predicate_slices": b.slices[1],
            "object_slices": b.slices[2],
            "paper": b.paper,
            "unfoldings": list(b.unfoldings),
        },
        "rank": intervals["rank"].to_dict(),
        "effective_rank": intervals["effective_rank"].to_dict() if effective else None,
        "estimate": fit.to_dict() if fit else None,
    }
    if as_json:
        print_json(result)
    else:
        _print(result, repr(db), {name: i.explanation for name, i in intervals.items()})
    if interrupted:
        print("interrupted; the intervals hold, but may be wider", file=sys.stderr)
        raise typer.Exit(code=130)


def _print(result: dict[str, Any], what: str, why: dict[str, tuple[str, ...]]) -> None:
    b, fit = result["bounds"], result["estimate"]
    slices = [b[f"{name}_slices"] for name in ("subject", "predicate", "object")]
    print(f"{result['source']}: {what}")
    print(f"  triples                  {b['triples']}")
    print(f"  paper's count            {b['paper']}   min(sum_k |V_k|, sum_q |V_q|), Prop. 2.1")
    print(f"  sums of slice ranks      {' '.join(map(str, slices))}   subject, predicate, object")
    print(f"  unfolding ranks          {' '.join(map(str, b['unfoldings']))}")
    for name in ("rank", "effective_rank"):
        interval = result[name]
        if interval is None:
            continue
        known = "known exactly" if interval["closed"] else "certified"
        ends = f"[{interval['lower']}, {interval['upper']}]"
        print(f"  {name.replace('_', ' '):<24} {ends}   {known}")
        for line in why[name]:
            print(f"    {line}")
    if fit:
        print(f"  estimate                 {fit['rank']}   {fit['method']}, residual "
              f"{fit['residual']:.1e}; no certificate")  # fmt: skip
