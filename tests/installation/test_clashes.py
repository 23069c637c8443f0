"""What else is called ``capacity`` is found: distributions, commands, modules and packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import capacity
from capacity.installation.report import clashes

OURS = Path(capacity.__file__).parent


def distribution(
    folder: Path, name: str, *, record: str = "", top: str = "", entry: str = ""
) -> None:
    info = folder / f"{name.replace('-', '_')}-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    for file, text in (("RECORD", record), ("top_level.txt", top), ("entry_points.txt", entry)):
        if text:
            (info / file).write_text(text)


def test_there_is_none_where_nothing_else_has_the_name(tmp_path: Path) -> None:
    distribution(tmp_path, "carrying-capacity", record="carrying_capacity/__init__.py,,\n")
    distribution(tmp_path, "knowledge-capacity", record="capacity/__init__.py,,\n")
    assert clashes([str(tmp_path)], tmp_path, OURS) == ()
    assert clashes(sys.path, OURS.parent, OURS) == ()


@pytest.mark.parametrize(
    "files",
    [{"record": "capacity/__init__.py,,\n"}, {"record": "capacity.py,,\n"},
     {"top": "capacity\n"}],
    ids=["a package", "a module", "by its top level"],
)  # fmt: skip
def test_another_distribution_with_the_package_is_named(
    files: dict[str, str], tmp_path: Path
) -> None:
    distribution(tmp_path, "capacity", **files)
    (found,) = clashes([str(tmp_path)], Path("nowhere"), OURS)
    assert (found.where, "pip uninstall capacity" in found.advice) == ("capacity", True)
    assert "with a package" in found.what


def test_another_command_of_the_name_is_a_clash_and_our_own_is_none(tmp_path: Path) -> None:
    theirs = "[console_scripts]\ncapacity = planner.main:run\n"
    distribution(tmp_path, "planner", entry=theirs)
    distribution(tmp_path, "fork", entry="[console_scripts]\ncapacity = capacity.cli:main\n")
    (found,) = clashes([str(tmp_path)], Path("nowhere"), OURS)
    assert (found.where, "with a command" in found.what) == ("planner", True)


@pytest.mark.parametrize("name", ["capacity.py", "capacity/__init__.py"])
def test_a_module_in_the_current_folder_shadows_the_library(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    (found,) = clashes([str(OURS.parent)], tmp_path, OURS)
    assert Path(found.where) == (
        tmp_path / name if name.endswith("y.py") else tmp_path / "capacity"
    )
    # after this library on the path it can't be imported in its place
    assert clashes([str(OURS.parent), str(tmp_path)], Path("nowhere"), OURS) == ()


@pytest.mark.parametrize("backport", [False, True])
def test_a_damaged_distribution_is_passed_over(backport: bool, tmp_path: Path) -> None:
    if backport:
        # its finder answers in place of Python's own
        pytest.importorskip("importlib_metadata")
    (tmp_path / "broken-1.0.dist-info").mkdir()
    assert clashes([str(tmp_path)], Path("nowhere"), OURS) == ()
