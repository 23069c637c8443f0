"""Files are read and written by name at one place: nothing hangs, and nothing is lost."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capacity import safe_files
from capacity.cli import main
from capacity.database import load
from capacity.errors import DatabaseFormatError, LeftoverWarning, StorageError
from capacity.safe_files import claim, read_file, remove_parts, require_regular, write_whole
from tests.oracles import EXAMPLES, ROOT

FIGURE_1 = EXAMPLES / "figure-1.ttl"


@pytest.fixture(autouse=True)
def nothing_hangs() -> Any:
    """An alarm that ends what waits for a pipe."""

    def ring(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def odd_places(folder: Path) -> dict[str, Path]:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    link = folder / "link"
    link.symlink_to(pipe)
    return {"named pipe": pipe, "link to a pipe": link, "device": Path("/dev/zero"),
            "folder": folder}  # fmt: skip


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    for kind, path in odd_places(tmp_path).items():
        said = "a named pipe" if "pipe" in kind else f"a {kind}"
        with pytest.raises(StorageError, match=f"it is {said}"):
            read_file(path, max_bytes=100)
        with pytest.raises(StorageError, match=f"it is {said}"):
            require_regular(path)
        with pytest.raises(DatabaseFormatError, match=f"it is {said}"):
            load(path)
        with pytest.raises(StorageError, match=f"can't be written, for it is {said}"):
            write_whole(path, b"")
    with pytest.raises(StorageError, match="no such file"):
        read_file(tmp_path / "none", max_bytes=100)
    with pytest.raises(StorageError, match="null"):
        read_file("a\0b", max_bytes=100)


@pytest.mark.parametrize(
    "command",
    [["rank", "PIPE"], ["verify", "PIPE", str(FIGURE_1)], ["verify", "CERTIFICATE", "PIPE"],
     ["train", "PIPE"], ["sweep", "PIPE", "--dry-run"], ["grid", "PIPE"],
     ["attention", "PIPE", "--text", "hi"],
     ["rank", str(FIGURE_1), "--certificate", "PIPE"]],
)  # fmt: skip
def test_every_command_refuses_a_pipe(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe, certificate = tmp_path / "pipe", tmp_path / "c.json"
    os.mkfifo(pipe)
    with pytest.raises(SystemExit):
        main(["rank", str(FIGURE_1), "--certificate", str(certificate)])
    capsys.readouterr()
    named = {"PIPE": str(pipe), "CERTIFICATE": str(certificate)}
    with pytest.raises(SystemExit) as end:
        main([named.get(word, word) for word in command])
    err = capsys.readouterr().err
    assert end.value.code == 2
    assert err.startswith("capacity: ")
    assert err.count("\n") == 1
    assert str(pipe) in err


def test_standard_input_is_read_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("-", "/dev/stdin"):
        text = io.TextIOWrapper(io.BytesIO(FIGURE_1.read_bytes()))
        monkeypatch.setattr(sys, "stdin", text)
        assert load(name) == load(FIGURE_1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FIGURE_1.read_bytes())))
    with pytest.raises(SystemExit) as end:
        main(["rank", "-", "--json"])
    assert end.value.code == 0
    assert '"triples": 8' in capsys.readouterr().out


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(StorageError, match="holds more than 1,000 bytes"):
        read_file(path, max_bytes=1000)
    path.write_bytes(b"x" * 1000)
    assert len(read_file(path, max_bytes=1000)) == 1000


def test_a_file_is_written_whole_or_what_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "made" / "f"
    write_whole(path, b"first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert [p.name for p in path.parent.iterdir()] == ["f"]
    # a link is replaced, and what it points to stays
    link = tmp_path / "link"
    link.symlink_to(path)
    write_whole(link, b"third")
    assert (path.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"second", b"third", False)


FULL = """
import resource, signal, sys
from capacity.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_full_disk_names_the_file_and_leaves_no_part(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", FULL, "rank", str(FIGURE_1), "--certificate", str(path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith(f"capacity: {path}: can't be written (File too large)")
    assert done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]
    assert path.read_text() == "old"


def test_temporary_files_of_other_names_and_behind_links_stay(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "own", tmp_path / "elsewhere"
    digits = "0123456789abcdef" * 2
    for at in (folder, elsewhere):
        at.mkdir()
        for name in (f".a.{digits}.part", f".b.{digits}.part", ".a.part", ".a.0.part", "a.part"):
            (at / name).write_text("")
    (folder / f".a.{digits[::-1]}.part").symlink_to(elsewhere / "a.part")
    (folder / f".a.{'0' * 32}.part").mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    before = sorted(p.name for p in elsewhere.iterdir())
    remove_parts(tmp_path / "link", lambda _: True)
    assert sorted(p.name for p in elsewhere.iterdir()) == before
    kept = sorted(p.name for p in folder.iterdir())
    remove_parts(folder, lambda name: name == "a")
    kept.remove(f".a.{digits}.part")
    assert sorted(p.name for p in folder.iterdir()) == kept


# writes a file, and stops before it is renamed
WRITER = """
import os, sys
from capacity.safe_files import write_whole
def waiting(_):
    print("now", flush=True)
    sys.stdin.readline()
os.fsync = waiting
write_whole(sys.argv[1], b"theirs")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such locks")
def test_the_part_of_a_killed_writer_goes_and_that_of_a_live_one_stays(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, name], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for name in (path, path, other)
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    assert len(list(tmp_path.glob(".*.part"))) == 3
    for writer in writers[1:]:
        writer.kill()
        writer.wait()
    with pytest.warns(LeftoverWarning, match="a temporary file of a process that"):
        write_whole(path, b"mine")
    # of the live writer, and of another file
    assert len(list(tmp_path.glob(".*.part"))) == 2
    assert path.read_bytes() == b"mine"
    writers[0].communicate("go on\n")
    for writer in writers[1:]:
        writer.communicate()
    assert writers[0].returncode == 0
    assert path.read_bytes() == b"theirs"
    with pytest.warns(LeftoverWarning):
        write_whole(other, b"mine")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_a_part_that_is_taken_for_abandoned_as_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[bool] = []

    def late(descriptor: int) -> bool | None:
        (part,) = tmp_path.glob(".*.part")
        claims.append(True)
        if len(claims) < 3:
            part.unlink()
        return False if len(claims) == 1 else claim(descriptor)

    monkeypatch.setattr(safe_files, "claim", late)
    write_whole(tmp_path / "a", b"mine")
    assert len(claims) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_files_are_written_where_the_system_has_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_files, "fcntl", None)
    left = tmp_path / f".a.{'0' * 32}.part"
    left.write_text("")
    write_whole(tmp_path / "a", b"mine")
    # whether it is in use can't be told
    assert sorted(p.name for p in tmp_path.iterdir()) == [left.name, "a"]


def test_an_interrupted_writer_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "f", b"x")
    assert list(tmp_path.iterdir()) == []


def test_files_are_read_where_the_system_has_no_flags_of_posix(tmp_path: Path) -> None:
    # Windows has O_BINARY, and neither of these two
    (tmp_path / "a").write_bytes(b"a\r\nb")
    code = (
        "import os, sys; del os.O_CLOEXEC, os.O_NONBLOCK\n"
        "from capacity.safe_files import read_file\n"
        "assert read_file(sys.argv[1], max_bytes=9) == b'a\\r\\nb'"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=True)
