"""Leftovers of a killed count go at the next one there, and nothing that anybody needs does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capacity.errors import LeftoverWarning
from capacity.safe_files import claim
from capacity.stores import count_duckdb
from capacity.stores.scratch import temporary
from capacity.stores.scratch.temporary import temporary_folder
from tests.commands import run
from tests.oracles import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no such locks")
# holds a folder of its own, until it is told to go on
HOLDER = """
import sys
from pathlib import Path
from capacity.stores.scratch.temporary import temporary_folder
with temporary_folder(sys.argv[1]) as folder:
    Path(folder, "spilled").mkdir()
    Path(folder, "spilled", "rows").write_bytes(bytes(3 * 10**6))
    print(folder, flush=True)
    sys.stdin.readline()
    assert Path(folder, "spilled", "rows").exists()
"""


def holder(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, parent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A folder of a process that was killed."""
    process, folder = holder(tmp_path)
    process.kill()
    process.communicate()
    assert (folder / "spilled" / "rows").exists()
    return folder


def test_what_a_killed_process_left_goes_and_is_told_in_a_line(
    killed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(killed.parent))
    facts = killed.parent / "a.nt"
    facts.write_text("<x:a> <x:p> <x:b> .\n")
    with pytest.warns(LeftoverWarning, match=f"{killed}: .* had left 3 MB there"):
        assert count_duckdb(facts).facts == 1
    assert [*killed.parent.iterdir()] == [facts]
    # nothing is said of nothing
    code, _, err = run(capsys, "rank", facts, "--out-of-core")
    assert (code, err) == (0, "")


def test_the_command_tells_it_on_standard_error(
    killed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(killed.parent))
    facts = killed.parent / "a.nt"
    facts.write_text("<x:a> <x:p> <x:b> .\n")
    monkeypatch.setattr("warnings.filters", [])
    code, out, err = run(capsys, "rank", facts, "--out-of-core")
    assert code == 0
    assert out.startswith("The rank is 1")
    assert err == (
        f"capacity: {killed}: a process that was killed had left 3 MB there, which were removed.\n"
    )


def test_a_folder_in_use_stays_whatever_its_process_does(tmp_path: Path) -> None:
    process, folder = holder(tmp_path)
    # one that is stopped is alive
    process.send_signal(signal.SIGSTOP)
    with temporary_folder(str(tmp_path)) as other:
        assert (folder / "spilled" / "rows").exists()
        assert Path(other) != folder
    process.send_signal(signal.SIGCONT)
    process.communicate("go on\n")
    assert process.returncode == 0
    assert not list(tmp_path.iterdir())


def test_folders_of_others_stay(
    killed: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = killed.parent
    # of a person; a file; of a process that is just making it; a link to one that would go
    (parent / "capacity-notes").mkdir()
    (parent / "capacity-notes" / "in-use").write_text("no machine")
    (parent / "capacity-file").write_text("mine")
    (parent / "capacity-new").mkdir()
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "folder"
    killed.rename(elsewhere)
    (parent / "capacity-link").symlink_to(elsewhere)
    # and claims that are links
    (parent / "capacity-linked").mkdir()
    (parent / "capacity-linked" / "in-use").symlink_to(elsewhere / "in-use")
    before = sorted(parent.rglob("*")), sorted(elsewhere.rglob("*"))
    with temporary_folder(str(parent)):
        pass
    assert (sorted(parent.rglob("*")), sorted(elsewhere.rglob("*"))) == before
    back = parent / "capacity-back"
    (parent / "capacity-link").unlink()
    elsewhere.rename(back)
    uid = os.getuid()
    for what, value in (("os.getuid", lambda: uid + 1), ("platform.node", lambda: "another")):
        with monkeypatch.context() as patched:
            patched.setattr(what, value)
            with temporary_folder(str(parent)):
                assert back.exists()
    with pytest.warns(LeftoverWarning), temporary_folder(str(parent)):
        assert not back.exists()


def test_a_folder_that_is_taken_for_abandoned_as_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def late(descriptor: int) -> bool | None:
        made.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        if len(made) == 1:
            # another process holds it for a moment, to remove it
            return False
        if len(made) == 2:
            # or has removed it already
            made[-1].unlink()
        return claim(descriptor)

    monkeypatch.setattr(temporary, "claim", late)
    with temporary_folder(str(tmp_path)) as folder:
        assert [*tmp_path.rglob("*")] == [Path(folder), Path(folder, "in-use")]
    assert len({one.parent for one in made}) == 3
    assert not list(tmp_path.iterdir())


def test_an_error_in_the_folder_is_raised_and_removes_it(tmp_path: Path) -> None:
    def work() -> None:
        with temporary_folder(str(tmp_path)) as folder:
            Path(folder, "file").write_text("")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert not list(tmp_path.iterdir())
