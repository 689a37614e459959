"""Folders and files that appear whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from oscar_causal.data import folders
from oscar_causal.data.folders import check_format, finite_or_none, new_folder, read_json, write_json, write_text
from oscar_causal.errors import FolderError, UsageError


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


def fail(out: Path, kind: type[BaseException], beside: str | None = None) -> None:
    with new_folder(out) as folder:
        (folder / "x").write_text("1")
        if beside:
            (out.parent / beside).write_text("1")
        raise kind("no")


def test_a_new_folder_appears_at_the_end(tmp_path: Path) -> None:
    with new_folder(tmp_path / "a" / "b") as folder:
        (folder / "x").write_text("1")
        assert not (tmp_path / "a" / "b").exists()
        assert folder.parent == tmp_path / "a" / "b.partial"
    assert names(tmp_path / "a" / "b") == ["x"]
    assert names(tmp_path / "a") == ["b"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, OSError])
def test_nothing_is_left_of_a_failure_not_even_parents(tmp_path: Path, kind: type[BaseException]) -> None:
    with pytest.raises(FolderError if kind is OSError else kind):
        fail(tmp_path / "a" / "b" / "c", kind)
    assert names(tmp_path) == []


def test_parents_that_others_use_by_now_are_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"):
        fail(tmp_path / "a" / "b", ValueError, beside="other")
    assert names(tmp_path / "a") == ["other"]


def test_an_existing_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").write_text("1")
    with pytest.raises(UsageError, match="exists already"), new_folder(tmp_path / "a"):
        pass
    with pytest.raises(ValueError, match="no"), new_folder(tmp_path / "a", force=True):
        raise ValueError("no")
    assert names(tmp_path / "a") == ["old"]
    with new_folder(tmp_path / "a", force=True) as folder:
        (folder / "new").write_text("1")
        assert names(tmp_path / "a") == ["old"]
    assert names(tmp_path / "a") == ["new"]
    assert names(tmp_path) == ["a"]


def test_the_old_one_comes_back_when_the_last_step_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").write_text("1")
    rename = Path.rename

    def fail_once(self: Path, target: Path) -> Path:
        if self.name == folders.NEW:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(folders, "_exchanged_at_once", lambda new, old: False)
    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(FolderError, match="No space left"), new_folder(tmp_path / "a", force=True):
        pass
    monkeypatch.undo()
    assert names(tmp_path / "a") == ["old"]
    assert names(tmp_path) == ["a"]


def replace(out: Path, content: str) -> None:
    with new_folder(out, force=True) as folder:
        (folder / "x").write_text(content)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a folder is replaced in several steps")
def test_a_folder_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(tmp_path / "a", "old")
    rename, seen = Path.rename, []

    def watched(self: Path, target: Path) -> Path:
        result = rename(self, target)
        seen.append((tmp_path / "a").exists())
        return result

    monkeypatch.setattr(Path, "rename", watched)
    replace(tmp_path / "a", "new")
    assert all(seen)
    assert (tmp_path / "a" / "x").read_text() == "new"
    assert names(tmp_path) == ["a"]


def test_a_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    replace(tmp_path / "target", "old")
    (tmp_path / "a").symlink_to("target")
    replace(tmp_path / "a", "new")
    assert [(tmp_path / name / "x").read_text() for name in ("a", "target")] == ["new", "old"]
    assert names(tmp_path) == ["a", "target"]


def run_killed(out: Path, setup: str, block: str) -> None:
    """A process that is killed while it replaces `out`."""
    lines = [
        "import os, pathlib, signal, sys",
        "from oscar_causal.data import folders",
        "kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)",
        setup,
        "with folders.new_folder(sys.argv[1], force=True) as folder:",
        "    (folder / 'x').write_text('new')",
        f"    {block}",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines), str(out)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL


def test_what_a_killed_run_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    run_killed(tmp_path / "a", "", "kill()")
    assert names(tmp_path) == ["a.partial"]
    with new_folder(tmp_path / "a") as folder:
        assert names(folder) == []
    assert names(tmp_path) == ["a"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a folder is replaced in several steps")
def test_a_kill_right_after_the_exchange(tmp_path: Path) -> None:
    replace(tmp_path / "a", "old")
    run_killed(tmp_path / "a", "exchange = folders._exchange", "folders._exchange = lambda *p: (exchange(*p), kill())")
    assert (tmp_path / "a" / "x").read_text() == "new"
    replace(tmp_path / "a", "newer")
    assert names(tmp_path) == ["a"]


def test_a_kill_between_two_renames_where_there_is_no_exchange(tmp_path: Path) -> None:
    replace(tmp_path / "a", "old")
    stop = "pathlib.Path.rename = lambda *p: (rename(*p), kill())"
    run_killed(tmp_path / "a", "folders._exchanged_at_once = lambda *_: False; rename = pathlib.Path.rename", stop)
    assert names(tmp_path) == ["a.partial", "a.partial-old"]
    for force in (False, True):
        with pytest.raises(UsageError, match=r"a\.partial-old: .*rename this"), new_folder(tmp_path / "a", force=force):
            pass
    (tmp_path / "a.partial-old").rename(tmp_path / "a")
    assert (tmp_path / "a" / "x").read_text() == "old"
    replace(tmp_path / "a", "new")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("force", [False, True])
def test_a_second_writer_is_refused_and_spoils_nothing(tmp_path: Path, force: bool) -> None:
    """In one process, so also with one process id."""
    with new_folder(tmp_path / "a") as folder:
        (folder / "x").write_text("1")
        with pytest.raises(UsageError, match="another run is writing"), new_folder(tmp_path / "a", force=force):
            pass
        (folder / "y").write_text("1")
    assert names(tmp_path / "a") == ["x", "y"]
    assert names(tmp_path) == ["a"]


def test_one_of_many_writers_at_once_wins(tmp_path: Path) -> None:
    refused: list[UsageError] = []
    together = threading.Barrier(8)

    def write(name: str) -> None:
        together.wait()
        try:
            with new_folder(tmp_path / "a") as folder:
                for k in range(5):
                    (folder / f"{name}-{k}").write_text(name)
        except UsageError as error:
            refused.append(error)

    for _ in range(8):
        writers = [threading.Thread(target=write, args=(str(k),)) for k in range(8)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        whole = names(tmp_path / "a")
        assert len({name[0] for name in whole}) == 1
        assert len(whole) == 5
        assert len(refused) == 7
        assert all("another run" in str(error) or "exists already" in str(error) for error in refused)
        assert names(tmp_path) == ["a"]
        replace(tmp_path / "a", "")
        (tmp_path / "a" / "x").unlink()
        (tmp_path / "a").rmdir()
        refused.clear()


def test_a_run_that_ends_just_before_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = folders.claim

    def late(partial: Path, *, what: str) -> object:
        monkeypatch.undo()
        replace(tmp_path / "a", "of another run")
        return claim(partial, what=what)

    monkeypatch.setattr(folders, "claim", late)
    with pytest.raises(UsageError, match="exists already"), new_folder(tmp_path / "a"):
        pass
    assert (tmp_path / "a" / "x").read_text() == "of another run"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("end", [Path.unlink, lambda path: (path.unlink(), path.touch())])
def test_a_run_that_ends_between_opening_and_locking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[Path], object]
) -> None:
    """What is locked then is no longer the file of that name."""
    flock = fcntl.flock
    path = tmp_path / "lock"
    monkeypatch.setattr(fcntl, "flock", lambda file, how: (end(path), flock(file, how)))
    with pytest.raises(UsageError, match="another run is writing here"):
        folders.exclusive(path, what="writing")


def test_a_disk_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: object, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(FolderError, match="cannot be locked, which this disk must allow: No locks"):
        write_text(tmp_path / "x", "1")


def test_an_unfinished_run_is_not_thrown_away_unasked(tmp_path: Path) -> None:
    (tmp_path / "a.partial").mkdir()
    (tmp_path / "a.partial" / "plan.json").write_text("1")
    with pytest.raises(UsageError, match="an unfinished run is there"), new_folder(tmp_path / "a"):
        pass
    with pytest.raises(ValueError, match="no"), new_folder(tmp_path / "a", force=True):
        raise ValueError("no")
    assert "plan.json" in names(tmp_path / "a.partial")
    replace(tmp_path / "a", "1")
    assert names(tmp_path) == ["a"]


def test_all_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    fsync, rename, replace_file = os.fsync, Path.rename, Path.replace

    def note(number: int) -> None:
        flushed.append(os.fstat(number).st_ino)
        fsync(number)

    def check(self: Path) -> None:
        inside = [self, *self.rglob("*")] if self.is_dir() else [self]
        assert {path.stat().st_ino for path in inside} <= set(flushed)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(Path, "rename", lambda self, target: (check(self), rename(self, target))[1])
    monkeypatch.setattr(Path, "replace", lambda self, target: (check(self), replace_file(self, target))[1])
    with new_folder(tmp_path / "a") as folder:
        (folder / "b").mkdir()
        (folder / "b" / "x").write_text("1")
        write_text(folder / "y", "1")
    assert flushed[-1] == tmp_path.stat().st_ino  # and its name


def test_modes_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with new_folder(tmp_path / "a") as folder:
            write_text(folder / "x", "1")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "x")] == [0o750, 0o640]


def test_a_second_holder_that_waits_comes_after_the_first(tmp_path: Path) -> None:
    order, begun = list[str](), threading.Event()

    def second() -> None:
        begun.set()
        with folders.exclusive(tmp_path / "lock", what="writing", wait=True):
            order.append("second")

    with folders.exclusive(tmp_path / "lock", what="writing"):
        other = threading.Thread(target=second)
        other.start()
        begun.wait()
        other.join(0.1)
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with folders.exclusive(tmp_path / "x.partial", what="writing x") as held:
        held.write(b"a longer text that a killed run has begun")
        with pytest.raises(UsageError, match="another run is writing x here"):
            write_text(path, "mine")
    assert names(tmp_path) == ["x.partial"]
    write_text(path, "mine")
    assert names(tmp_path) == ["x"]
    assert path.read_text() == "mine"
    with pytest.raises(UsageError, match="exists already"):
        folders.write_bytes(path, b"other", force=False)
    assert (names(tmp_path), path.read_text()) == (["x"], "mine")


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "x.partial").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic link"):
        write_text(tmp_path / "x", "mine")
    assert not (tmp_path / "victim").exists()


def test_places_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("1")
    inside = tmp_path / "home" / "inside"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    for out, force in (
        ("../../file", False),
        ("../../file", True),
        (".", True),
        ("..", True),
        ("/", True),
        ("x" * 300, False),
    ):
        with pytest.raises(UsageError), new_folder(out, force=force):
            pass
    with pytest.raises(FolderError), new_folder("../../file/x"):
        pass
    assert inside.exists()
    assert names(tmp_path) == ["file", "home"]


def test_an_unwritable_place(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        place = Path("/proc/nowhere/at/all")  # even root cannot write here
    else:
        tmp_path.chmod(0o500)
        place = tmp_path / "x"
    with pytest.raises(FolderError, match="cannot be written"), new_folder(place):
        pass


def test_json_files(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": "é\u2028"})
    assert read_json(tmp_path / "a.json") == {"a": "é\u2028", "b": 1}
    assert (tmp_path / "a.json").read_text(encoding="utf-8").index('"a"') < 5
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    write_text(tmp_path / "a.txt", "x")
    assert names(tmp_path) == ["a.json", "a.txt"]


@pytest.mark.parametrize(
    "content",
    [b"", b"[1]", b"{", b"\xff", b'{"a": NaN}', b'{"a": 1e400}', b'{"a": "\\ud800"}', b"[" * 100_000, b"null"],
)
def test_damaged_json_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(FolderError, match=r"a\.json: expected a JSON object") as error:
        read_json(tmp_path / "a.json")
    assert "\n" not in str(error.value)
    with pytest.raises(FolderError, match="missing"):
        read_json(tmp_path / "gone.json")


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"kind": "model", "format_version": 1}, "expected an OSCAR dataset"),
        ({"format_version": 1}, "kind = None"),
        ({"kind": "dataset"}, "positive whole number"),
        ({"kind": "dataset", "format_version": True}, "positive whole number"),
        ({"kind": "dataset", "format_version": 0}, "positive whole number"),
        ({"kind": "dataset", "format_version": 3}, "newer OSCAR"),
    ],
)
def test_format_versions(info: dict[str, object], words: str) -> None:
    with pytest.raises(FolderError, match=words):
        check_format(info, Path("x"), kind="dataset", newest=2)
    assert check_format({"kind": "dataset", "format_version": 2}, Path("x"), kind="dataset", newest=2) == 2


def test_numbers_that_json_lacks() -> None:
    assert [finite_or_none(x) for x in (1.5, float("nan"), float("inf"))] == [1.5, None, None]
