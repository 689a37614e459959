"""The story of the made fleet, made small; and its page tells what was typed and what came out."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from oscar_causal.data.rules import equivalent, parse
from oscar_causal.data.sequences import read_dataset
from oscar_causal.errors import UsageError

Script = Callable[[str], ModuleType]
DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_story_of_the_fleet(script: Script, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    small = ["--sequences", "160", "--labels", "3", "--steps", "3", "--contexts", "36", "--world", "1"]
    script("story_fleet").main(["--out", str(out), *small])
    figures = json.loads((out / "story-fleet.json").read_text())
    assert (out / "page.html").stat().st_size > 10_000
    known, new = (set(read_dataset(out / name).subject_ids.to_pylist()) for name in ("known", "new"))
    assert not known & new
    assert known | new == set(read_dataset(out / "fleet").subject_ids.to_pylist())
    boundaries = figures["boundaries"]
    assert boundaries["right"] + len(boundaries["wrong"]) == boundaries["causes"]
    assert boundaries["right"] + len(boundaries["missed"]) == boundaries["true"]
    book = json.loads((out / "book.json").read_text())
    published = json.loads((out / "fleet" / "rules.json").read_text())
    assert figures["mistakes"]
    assert {label for label in book if book[label] != published[label]} == set(figures["mistakes"])
    for told in figures["mistakes"].values():
        assert not equivalent(parse(told["true"]), parse(told["book"]))
    assert set(figures["truth"]) == set(figures["rules"])
    assert 0 <= figures["score"]["fused"]["precision"] <= 1
    assert "the expert's book" in capsys.readouterr().out
    with pytest.raises(UsageError, match="exists already"):
        script("story_fleet").main(["--out", str(out)])


def test_the_mistakes_are_mistakes(script: Script) -> None:
    assert doctest.testmod(script("story_fleet")).failed == 0


def test_the_page_tells_what_was_typed_and_found() -> None:
    page = (DOCS / "stories" / "fleet.md").read_text(encoding="utf-8")
    figures = json.loads((DOCS / "results" / "story-fleet.json").read_text())
    block = re.search(r"^```sh\n(oscar synth.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert block is not None
    lines = [line.split("  #")[0].strip() for line in block.group(1).replace("\\\n", " ").splitlines()]
    assert [" ".join(line.split()) for line in lines] == [step["line"] for step in figures["typed"]]
    assert figures["commit"][:7] in page
    for name in ("one-shot", "fused"):
        assert f"{figures['score'][name]['f1_of_means']:.3f}" in page
    for label, told in figures["mistakes"].items():
        assert label in page
        assert told["relation"] in page
