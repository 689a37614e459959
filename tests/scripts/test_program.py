"""Records of campaigns name the program: its commit, and whether it was changed since."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


def test_the_commit_is_told_with_what_is_in_none(
    script: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script("program")
    monkeypatch.setattr(program, "_HERE", tmp_path)
    assert program.commit("abc") == "abc"
    assert program.commit() == "unknown"

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    git("init", "--quiet")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "--quiet", "--message", "first")
    head = git("rev-parse", "HEAD").strip()
    assert program.commit() == head
    (tmp_path / "file").write_text("two")
    assert program.commit() == f"{head} and uncommitted changes"
