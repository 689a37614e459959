"""Folders and files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
        assert ".partial" in folder.name
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
        if self.name.startswith("a.partial-") and "old" not in self.name:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(FolderError, match="No space left"), new_folder(tmp_path / "a", force=True):
        pass
    monkeypatch.undo()
    assert names(tmp_path / "a") == ["old"]
    assert names(tmp_path) == ["a"]


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
