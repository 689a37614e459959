"""What a run of the tests left out is said in one line before pytest's closing one, with the command that brings it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOY = """\
import pytest

def test_a():
    pytest.importorskip("no_such_package")

@pytest.mark.skipif({skip}, reason="it is Monday")
@pytest.mark.parametrize("k", [1, 2])
def test_b(k):
    pass
"""


def last_lines(place: Path, *words: str, **environment: str) -> list[str]:
    """The last two lines of a run of pytest."""
    kept = {key: value for key, value in os.environ.items() if key != "OSCAR_REQUIRE_BROWSER"}
    kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # importing them all takes seconds
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "pytest_timeout", *words]
    ended = subprocess.run(command, cwd=place, env=kept | environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.splitlines()[-2:]


def test_a_machine_without_chromium_is_told(tmp_path: Path) -> None:
    told, closing = last_lines(ROOT, "tests/serve/test_browser.py", PATH=str(tmp_path))
    found = re.fullmatch(r"left out: (\d+) \(no Chromium: `bash \.ci/tools` brings it\)", told)
    assert found is not None, told
    assert closing.startswith(f"{found[1]} skipped in ")


@pytest.mark.parametrize("workers", [[], ["-p", "xdist.plugin", "-n", "2"]])
def test_reasons_are_counted(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "test_toy.py").write_text(TOY.format(skip=True))
    told, closing = last_lines(tmp_path, *workers)
    assert told == "left out: 2 (it is Monday); 1 (no no_such_package: `make setup` brings it)"
    assert closing.startswith("3 skipped in ")


def test_nothing_is_said_where_nothing_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "test_toy.py").write_text("def test_a():\n    pass\n")
    assert not any(line.startswith("left out") for line in last_lines(tmp_path))
