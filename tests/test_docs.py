"""The documentation runs: Python blocks are executed, every command line names verbs and options that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import oscar_causal
from oscar_causal import cli
from oscar_causal.data.synthetic import preset, write_fleet

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(language: str) -> Iterator[Any]:
    for page in PAGES:
        for number, found in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
            if found.group(1) == language:
                yield pytest.param(found.group(2), id=f"{page.name}-{number}")


def commands() -> Iterator[list[str]]:
    for block in blocks("sh"):
        for line in block.values[0].splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["oscar"]:
                yield words[1:]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small dataset `fleet`, as the pages suppose."""
    folder = tmp_path_factory.mktemp("workplace")
    write_fleet(preset("demo", sequences=400), 0, folder / "fleet", workers=1)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after the other, as a reader would type them."""
    monkeypatch.chdir(workplace)
    space = {"__name__": "documentation"}
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if found.group(1) == "python":
            exec(compile(found.group(2), page.name, "exec"), space)  # noqa: S102


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_command_lines_name_what_exists(oscar: Callable[..., Any], words: list[str]) -> None:
    assert words[0] in cli.VERBS
    shown = oscar(words[0], "--help").out
    for word in words[1:]:
        if word.startswith("--"):
            assert re.search(rf"{word}\b", shown), f"{word} is no option of {words[0]}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("name", [name for name in oscar_causal.__all__ if name != "__version__"])
def test_public_names_exist_and_are_documented(name: str) -> None:
    assert getattr(oscar_causal, name).__doc__


def test_every_verb_is_in_the_readme_or_a_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for verb in cli.VERBS:
        assert f"oscar {verb}" in text, verb
