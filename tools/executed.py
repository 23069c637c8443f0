"""Write the tutorials and notebooks with their outputs, for a reader of the repository.

    make pages

`make docs` executes every cell of the site and keeps the outputs in build/executed. A tutorial
docs/tutorials/NAME.md becomes the page docs/tutorials/executed/NAME.md, with its pictures beside
it; a notebook is written in its place. tests/test_site.py compares them with what it executes.
"""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from myst_nb.core.read import read_myst_markdown_notebook
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "build" / "executed"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NOTE = "*These are [the tutorial](../{name}) and its outputs, as `make pages` writes them.*"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def executed(page: Path, cache: Path = CACHE) -> NotebookNode:
    """The notebook of a page with the outputs that the last build of the site kept of it."""
    text = page.read_text(encoding="utf-8")
    is_notebook = page.suffix == ".ipynb"
    source = nbformat.reads(text, 4) if is_notebook else read_myst_markdown_notebook(text)
    try:
        _, notebook = get_cache(str(cache)).merge_match_into_notebook(source)
    except KeyError:
        sys.exit(f"{page.relative_to(ROOT)} was changed since `make docs`; run it first.")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # warnings name the folders of a machine, and bars are drawn for terminals
            kept = [output for output in cell.outputs if output.get("name") != "stderr"]
            cell.outputs = _merged(kept)
    return notebook


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join texts that follow one another: a kernel sends them in one piece or in several."""
    merged: list[NotebookNode] = []
    for output in outputs:
        before = merged[-1] if merged else None
        streams = before is not None and before.output_type == output.output_type == "stream"
        if before is not None and streams and before.name == output.name:
            before.text += output.text
        else:
            merged.append(output)
    return merged


def files_of(page: Path, notebook: NotebookNode) -> dict[Path, bytes]:
    """Return what is stored for an executed page, by path: a page with pictures, or a notebook."""
    if page.suffix == ".ipynb":
        return {page: (nbformat.writes(_stable(notebook)) + "\n").encode()}
    folder = page.parent / "executed"
    pictures: dict[Path, bytes] = {}
    parts: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            # pages are a folder further down
            parts.append(re.sub(r"\]\(\.\./", "](../../", cell.source))
        elif "remove-cell" not in cell.metadata.get("tags", ()):
            parts.append(f"```python\n{cell.source}\n```")
            for output in cell.outputs:
                picture = output.get("data", {}).get("image/png")
                if picture:
                    path = folder / f"{page.stem}-{len(pictures) + 1}.png"
                    pictures[path] = base64.b64decode(picture)
                    parts.append(f"![Output of the cell above]({path.name})")
                elif text := _text_of(output):
                    parts.append(f"```text\n{text}\n```")
    title, *rest = parts
    head, _, tail = title.partition("\n")
    shown = filter(None, [head, NOTE.format(name=page.name), tail.strip(), *rest])
    return {folder / page.name: ("\n\n".join(shown) + "\n").encode(), **pictures}


def words(text: str) -> list[str]:
    """The lines of an executed page without numbers and pictures, which differ by processor."""
    lines = [line for line in text.splitlines() if '"image/png"' not in line]
    return [re.sub(r"[-+\d.,e ]*\d[\d., ]*", "#", line).rstrip() for line in lines]


def _text_of(output: NotebookNode) -> str:
    text = (
        output.text
        if output.output_type == "stream"
        else output.get("data", {}).get("text/plain", "")
    )
    return ANSI.sub("", text).rstrip()


def _stable(notebook: NotebookNode) -> NotebookNode:
    """The same notebook without what differs between two executions of the same code."""
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec,
                         "language_info": {"name": "python"}}  # fmt: skip
    for cell in notebook.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k == "tags"}
        for output in cell.get("outputs", ()):
            output.metadata = {}
            # terminals and pages draw bars, and a picture is shown in place of its object's name
            if output.output_type == "stream":
                output.text = ANSI.sub("", output.text)
                del output["metadata"]
    return notebook


def main() -> None:
    """Write all of them, and remove what is left of others."""
    for path in (ROOT / "docs" / "tutorials" / "executed").glob("*"):
        path.unlink()
    for page in [*TUTORIALS, *NOTEBOOKS]:
        for path, content in files_of(page, executed(page)).items():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            print(path.relative_to(ROOT), f"{len(content) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
