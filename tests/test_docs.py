"""The documentation runs: Python blocks are executed, command lines are parsed by the command itself, names exist."""

from __future__ import annotations

import ast
import doctest
import json
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

import oscar_causal
from oscar_causal import cli
from oscar_causal.data.synthetic import preset, write_fleet

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LANGUAGES = {"sh", "python", "json", "text"}
PUBLIC = sorted(oscar_causal._PUBLIC)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    name = page.relative_to(ROOT).as_posix()
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(name, match.group(1) or "sh", match.group(2)) for match in found]


BLOCKS = [block for page in PAGES for block in blocks(page)]


def commands(program: str) -> Iterator[Any]:
    """The words after `program` of each such line in a shell block."""
    for block in BLOCKS:
        for line in block.text.replace("\\\n", " ").splitlines() if block.language == "sh" else ():
            words = shlex.split(line.replace("…", "..."), comments=True)
            if words[:1] == [program]:
                yield pytest.param(words[1:], id=f"{block.page}: {' '.join(words[1:])}")


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small dataset `fleet`, as the pages suppose."""
    folder = tmp_path_factory.mktemp("workplace")
    write_fleet(preset("demo", sequences=400), 0, folder / "fleet", workers=1)
    return folder


@pytest.fixture(scope="module")
def command() -> Any:
    return typer.main.get_command(cli.build_app())


def test_blocks_are_in_languages_that_are_checked() -> None:
    assert {block.language for block in BLOCKS} <= LANGUAGES


@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS if block.language == "python"}))
def test_python_blocks_run(page: str, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after the other, as a reader would type them."""
    monkeypatch.chdir(workplace)
    space = {"__name__": "documentation"}
    for block in BLOCKS:
        if (block.page, block.language) == (page, "python"):
            exec(compile(block.text, page, "exec"), space)  # noqa: S102


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "json"], ids=lambda block: block.page)
def test_json_blocks_are_json(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("words", list(commands("oscar")))
def test_command_lines_are_understood(command: Any, words: list[str]) -> None:
    """By the parser of the command: verbs, options, their values and the number of arguments; nothing is run."""
    if words[0].startswith("-"):
        assert any(words[0] in option.opts for option in command.params)
        return
    command.commands[words[0]].make_context(words[0], words[1:])


@pytest.mark.parametrize(
    "words", [["train"], ["train", "d", "--out", "m", "--nonsense"], ["select", "d", "--last", "x"]]
)
def test_a_wrong_line_would_be_found(command: Any, words: list[str]) -> None:
    with pytest.raises(cli._PARSER_ERROR):
        command.commands[words[0]].make_context(words[0], words[1:])


@pytest.mark.parametrize("words", list(commands("make")))
def test_make_targets_exist(words: list[str]) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(words) <= set(targets)


def test_commands_named_in_sentences_exist() -> None:
    for page in PAGES:
        for verb in re.findall(r"`oscar ([a-z][\w-]*)", page.read_text(encoding="utf-8")):
            assert verb in cli.VERBS, f"{page.name}: oscar {verb}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    named = re.findall(r": (\S+\.(?:md|ipynb))$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if ROOT / "docs" in page.parents]
    assert sorted(name for name in named if name.endswith(".md")) == [p for p in sorted(pages) if p[:8] != "results/"]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_documentation_and_an_example_that_runs(name: str) -> None:
    """A doctest of its own; a few that need a model or a package have theirs in a block that is run above."""
    if name == "to_pandas":
        pytest.importorskip("pandas")
    public = getattr(oscar_causal, name)
    assert public.__doc__
    names = dict(vars(import_module(public.__module__)))
    found = doctest.DocTestFinder(recurse=False).find(public, name, globs=names)
    ran = [doctest.DocTestRunner().run(example) for example in found]
    assert sum(result.failed for result in ran) == 0
    if name in SHOWN_ON_PAGES:
        assert name in USED
    else:
        assert sum(result.attempted for result in ran) > 0


SHOWN_ON_PAGES = {
    *("train", "TrainConfig", "load_model", "load_models", "check", "discover_folder", "explain_run"),
    *("score_results", "compare_results", "read_boundaries", "FusedConfig", "read_meds", "export_meds"),
    *("recover_rules", "RuleProposal", "RuleRecoveryConfig", "label_interplay", "label_graph"),
    *("population_graph", "filter_graph", "edge_table", "write_graph"),
}
"""Public names whose example is on a page (docs/reference.md, docs/importing.md), not in their docstring."""


def used_names() -> set[str]:
    """Names loaded in Python blocks, as `name` or as an attribute."""
    nodes = [node for block in BLOCKS if block.language == "python" for node in ast.walk(ast.parse(block.text))]
    plain = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return plain | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


USED = used_names()


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    listed = [line.removeprefix("::: ").rpartition(".") for line in text.splitlines() if line.startswith(":::")]
    assert sorted(name for _, _, name in listed) == PUBLIC
    for module, _, name in listed:
        assert getattr(oscar_causal, name).__module__ == module


def test_every_verb_is_in_the_readme_or_a_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for verb in cli.VERBS:
        assert f"oscar {verb}" in text, verb
