"""The shell blocks of README and documentation are followed line by line, each page in a folder of its own.

A comment before a block may say what the block supposes, what makes it small, and what is not run here and why; its
grammar is in CONTRIBUTING.md. Without one every line is run as it stands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
STORIES = ROOT / "docs" / "stories"
"""Not here: their data is not in the repository; `tests/scripts` runs each story on made-up data of the same shape."""
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if page.parent != STORIES]
BLOCK = re.compile(r"(?:^<!-- tests: ([^>]*?) -->\n)?^```(?:sh)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OTHER = re.compile(r"^```\w+\n.*?^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Notes:
    """A comment: things at hand, options added to a verb's lines from here on, beginnings of lines that are not run."""

    supplies: list[str] = field(default_factory=list)
    added: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def parse_notes(text: str) -> Notes:
    """`with A, B; VERB OPTIONS; not BEGINNING: REASON`, in any order."""
    notes = Notes()
    for part in re.split(r";\s+", " ".join(text.split())):
        word, _, rest = part.partition(" ")
        if word == "with":
            notes.supplies += rest.split(", ")
        elif word == "not":
            beginning, _, reason = rest.partition(": ")
            assert reason, f"{part!r}: say why after a colon"
            notes.skipped[beginning] = reason
        elif word:
            verb, _, options = part.partition(" --")
            assert options, f"{part!r}: expected a verb and options"
            notes.added[verb] = shlex.split(f"--{options}")
    return notes


def shell_blocks(text: str) -> Iterator[tuple[Notes, list[str]]]:
    """The shell blocks of a page with their notes; comments and empty lines are left out."""
    marked = OTHER.sub(lambda found: found.group() if found.group().startswith("```sh\n") else "", text)
    for found in BLOCK.finditer(marked):
        lines = [line.strip() for line in found.group(2).replace("\\\n", " ").splitlines()]
        yield parse_notes(found.group(1) or ""), [line for line in lines if line and not line.startswith("#")]


SHELL = {page: list(shell_blocks(page.read_text(encoding="utf-8"))) for page in PAGES}


@pytest.mark.parametrize("page", [page for page, blocks in SHELL.items() if blocks], ids=lambda page: page.stem)
def test_the_lines_of_a_page_run_in_order(
    page: Path,
    oscar: Callable[..., Any],
    supply: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    added: dict[str, list[str]] = {}
    unused: set[str] = set()
    for notes, lines in SHELL[page]:
        added |= notes.added
        unused |= {*notes.added, *notes.skipped}
        for name in notes.supplies:
            supply(name)
        for line in lines:
            words = shlex.split(line, comments=True)
            beginnings = [start for start in notes.skipped if line.startswith(start)]
            matching = [verb for verb in added if f"{line} ".startswith(f"oscar {verb} ")]
            unused -= {*beginnings, *matching}
            if beginnings:
                continue
            assert words[0] == "oscar", f"{line!r}: run elsewhere? then say `not {words[0]}: REASON` before the block"
            ran = oscar(*words[1:], *(option for verb in matching for option in added[verb]))
            assert ran.code == 0, f"{line}: {ran.err[-2000:]}"
    assert not unused, f"the comments name what no line has: {sorted(unused)}"


def test_a_comment_is_read() -> None:
    comment = "<!-- tests: with fleet, model; train --steps 3;\n not oscar serve: it never ends -->"
    ((notes, lines),) = shell_blocks(f"```python\nx\n```\n{comment}\n```sh\noscar x # y\n```\n")
    assert notes.supplies == ["fleet", "model"]
    assert notes.added == {"train": ["--steps", "3"]}
    assert notes.skipped == {"oscar serve": "it never ends"}
    assert lines == ["oscar x # y"]


@pytest.mark.parametrize("text", ["not oscar serve", "train 3", "nonsense"])
def test_a_comment_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        parse_notes(text)


def test_no_comment_is_lost() -> None:
    """Each stands right before a shell block."""
    for page, blocks in SHELL.items():
        written = page.read_text(encoding="utf-8").count("<!-- tests: ")
        used = sum(notes != Notes() for notes, _ in blocks)
        assert written == used or page.name == "CONTRIBUTING.md", page.name
