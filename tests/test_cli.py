"""The command: help without heavy imports, exit codes, one line for every mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oscar_causal
from oscar_causal import cli, errors

SOURCE = str(Path(oscar_causal.__file__).parents[1])


def child(*words: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    """`oscar ...` in a process of its own."""
    start = ["-c", code] if code is not None else ["-m", "oscar_causal"]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.run(
        [sys.executable, *start, *words], capture_output=True, text=True, env=environment, timeout=120, check=False
    )


def test_help_lists_every_verb_and_imports_nothing_heavy() -> None:
    code = """
import sys
from oscar_causal.cli import main
try:
    main()
finally:
    heavy = {"torch", "pyarrow", "numpy", "scipy", "pandas", "sympy", "matplotlib"} & set(sys.modules)
    sys.stderr.write(" ".join(sorted(heavy)))
"""
    ran = child("--help", code=code)
    assert (ran.returncode, ran.stderr) == (0, "")
    for verb in cli.VERBS:
        assert f" {verb} " in ran.stdout


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help(oscar: Callable[..., Any], verb: str) -> None:
    ran = oscar(verb, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "--help" in ran.out


def test_version() -> None:
    for words in (["--version"],):
        ran = child(*words)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"oscar {oscar_causal.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("fly",), "No such command"),
        (("import",), "Missing argument"),
        (("import", "x.csv"), "--out"),
        (("import", "x.csv", "--out", "y", "--gap", "soon"), "--gap"),
        (("select", "x", "--out", "y", "--last", "many"), "--last"),
        (("inspect", "x", "--colour"), "--colour"),
        (("inspect", "two\nlines"), "two lines"),
    ],
)
def test_mistakes_are_one_line(oscar: Callable[..., Any], words: tuple[str, ...], expected: str) -> None:
    oscar(*words).refused(expected)


def test_no_words_at_all_show_the_help(oscar: Callable[..., Any]) -> None:
    ran = oscar()
    assert (ran.code, ran.err) == (0, "")
    assert "Usage" in ran.out


def test_exit_codes_in_a_real_process(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("id,t,code\nq,zebra,A\n")
    cases = [
        (["import", str(tmp_path / "bad.csv"), "--out", str(tmp_path)], errors.UsageError.exit_code),
        (["import", str(tmp_path / "bad.csv"), "--out", str(tmp_path / "o")], errors.DataError.exit_code),
        (["inspect", str(tmp_path)], errors.FolderError.exit_code),
    ]
    for words, code in cases:
        ran = child(*words)
        assert ran.returncode == code, ran.stderr
        assert ran.stdout == ""
        assert ran.stderr.count("\n") == 1
        assert ran.stderr.startswith("oscar: ")


def test_every_error_is_one_line() -> None:
    for kind in (errors.OscarError, errors.UsageError, errors.DataError, errors.FolderError, errors.MissingExtra):
        assert str(kind("two\nlines\u2028or three")) == "two lines or three"
        assert kind("x").args == ("x",)


def test_a_defect_is_not_hidden(oscar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no mistake of the user keeps its stack trace."""

    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("oscar_causal.data.inspect.inspect_dataset", broken)
    monkeypatch.setattr(sys, "argv", ["oscar", "inspect", "x"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_public_names_can_be_imported_and_cost_nothing() -> None:
    code = "import sys, oscar_causal\nassert not {'numpy', 'pyarrow', 'torch'} & set(sys.modules)\n"
    code += "for name in oscar_causal.__all__: getattr(oscar_causal, name)\n"
    code += "assert set(oscar_causal.__all__) <= set(dir(oscar_causal))\n"
    ran = child(code=code)
    assert (ran.returncode, ran.stderr) == (0, "")
    with pytest.raises(AttributeError, match="nonsense"):
        oscar_causal.nonsense  # noqa: B018
