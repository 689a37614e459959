"""Shared by all tests: the command in this very process, and nasty names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from oscar_causal.cli import main

NASTY = (
    "A",
    "a,b",
    'say "hi"',
    '"',
    "two\nlines",
    "carriage\rreturn",
    "both\r\nends",
    " spaces ",
    "\ttab",
    "emoji 🚗💥",
    "</script><script>alert(1)</script>",
    '=cmd("calc")',
    "+1",
    "-",
    "0",
    "1",
    "NULL",
    "nan",
    "naïve é",
    "\u202eright to left",
    "\x85\u2028 strange line ends",
    "\\",
    "#",
    "'",
)


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    def refused(self, *words: str) -> str:
        """Assert a failure told in exactly one line that holds these words; returns the line."""
        assert self.code != 0
        assert self.out == ""
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("oscar: ")
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err
        return self.err


@pytest.fixture(scope="session")
def nasty() -> tuple[str, ...]:
    """Names that break careless programs."""
    return NASTY


@pytest.fixture
def oscar(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run `oscar ...` in this process; what it prints is caught at the file descriptors."""

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["oscar", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        caught = capfd.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0 if code is None else 1, caught.out, caught.err)

    return run
