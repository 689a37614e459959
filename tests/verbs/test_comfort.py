"""What every verb owes people: -v and -q, progress without a terminal, completion, exit codes, one line per extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oscar_causal
from oscar_causal import cli, errors
from oscar_causal.data.extras import EXTRAS
from oscar_causal.verbs import doctor, output
from oscar_causal.verbs.output import VOLUME, print_note, progress_bar

SOURCE = str(Path(oscar_causal.__file__).parents[1])
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _usual_volume() -> Any:
    yield
    VOLUME.verbose = VOLUME.quiet = False


def child(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "oscar_causal", *words]
    given = {**os.environ, "PYTHONPATH": SOURCE, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=given, timeout=120, check=False)


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_can_be_loud_and_quiet(oscar: Callable[..., Any], verb: str) -> None:
    shown = oscar(verb, "--help").out
    assert "-v, --verbose" in shown
    assert "-q, --quiet" in shown


def test_both_at_once_cannot_be(oscar: Callable[..., Any]) -> None:
    oscar("-q", "inspect", "nowhere", "-v").refused("--verbose or --quiet", "both")


def test_verbose_shows_where_an_error_came_from(oscar: Callable[..., Any], tmp_path: Path) -> None:
    loud = oscar("inspect", tmp_path, "-v")
    assert "Traceback" in loud.err
    assert loud.err.splitlines()[-1] == oscar("inspect", tmp_path).err.strip()  # and the next command is not loud
    assert loud.code == errors.FolderError.exit_code


def ticking(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock) * seconds)


def test_progress_without_a_terminal_is_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticking(monkeypatch, 4.0)
    with progress_bar("counting", "sheep") as show:
        for done in range(1, 11):
            show(done, 10)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "counting: 3 of 10 sheep, 28 s left",
        "counting: 6 of 10 sheep, 16 s left",
        "counting: 9 of 10 sheep, 4 s left",
        "counting: 10 of 10 sheep, 0 s left",
    ]


def test_quiet_has_no_progress_and_no_notes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticking(monkeypatch, 100.0)
    print_note("by the way")
    VOLUME.change(verbose=False, quiet=True)
    print_note("never mind")
    with progress_bar("counting", "sheep") as show:
        show(1, 2)
        show(2, 2)
    assert capsys.readouterr().err == "by the way\n"


def test_no_color_and_no_terminal_mean_plain_text(toy: Any) -> None:
    for environment in ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, {}):
        ran = child("inspect", str(toy.fleet), **environment)
        assert ran.returncode == 0
        colours = [part for part in ran.stdout.split("\x1b[")[1:] if part.split("m")[0] not in ("", "0", "1", "3")]
        assert not colours  # weight and slant at most
    assert "\x1b" not in ran.stdout


def test_completion_knows_the_verbs() -> None:
    for shell, words in (
        ("bash", {"COMP_WORDS": "oscar ex", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "oscar ex"}),
    ):
        ran = child(_OSCAR_COMPLETE=f"complete_{shell}", **words)
        for verb in ("export", "explain", "explain-run"):
            assert verb in ran.stdout, shell
        assert "train" not in ran.stdout
    shown = child("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")  # whatever started us
    assert "oscar" in shown.stdout


def test_the_exit_codes_that_help_and_page_list_are_those_of_the_errors(oscar: Callable[..., Any]) -> None:
    shown = " ".join(oscar("--help").out.split())
    page = (ROOT / "docs" / "formats.md").read_text()
    classes = [errors.UsageError, errors.DataError, errors.FolderError, errors.MissingExtra]
    assert [kind.exit_code for kind in classes] == [2, 3, 4, 5]
    for code in range(6):
        assert f"{code} " in shown[shown.index("Exit codes") :]
        assert f"| {code} |" in page


def test_extras_are_those_of_the_distribution() -> None:
    import tomllib

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        named = [requirement.split(">")[0].split("[")[0] for requirement in declared[extra]]
        named = ["sklearn" if name == "scikit-learn" else name for name in named]
        assert set(modules) <= set(named), extra


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(oscar_causal.__file__).parent / "py.typed").exists()


def test_doctor(oscar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "probe", lambda precision: f"{precision} was asked")
    found = json.loads(oscar("doctor", "--json").out)
    import numpy
    import torch

    assert found["packages"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert found["packages"]["numpy"] == numpy.__version__
    assert found["threads"]["torch"] == torch.get_num_threads()
    assert found["precision"] == {name: f"{name} was asked" for name in ("float32", "bfloat16")}
    assert found["devices"][0]["device"] == "cpu"
    assert set(found["extras"]) == set(EXTRAS)
    assert found["disk"]["current"]["free_gib"] <= found["disk"]["current"]["total_gib"]
    monkeypatch.setattr(doctor, "_extras", lambda: {"meds": {"meds": None}})
    shown = oscar("doctor").out
    assert "extra meds (meds): missing: pip install 'oscar-causal[meds]'" in shown


def test_the_probe_survives_what_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.probe("float32") == "works"
    monkeypatch.setattr(doctor, "PROBE", "import os; os.kill(os.getpid(), 4)  # {precision}")
    assert doctor.probe("bfloat16") == "crashes (signal 4)"
    monkeypatch.setattr(doctor, "PROBE", "raise ValueError('no such precision {precision}')")
    assert doctor.probe("float3") == "fails: ValueError: no such precision float3"
