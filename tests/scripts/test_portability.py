"""The tests under settings of other CPUs: settings reach the libraries, failures are counted, load ends."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

TESTS = """
import os
import pytest

@pytest.mark.bits
def test_good(): assert os.environ["OMP_NUM_THREADS"] == "1"

@pytest.mark.bits
def test_bad(): assert os.environ["OMP_NUM_THREADS"] == "2"

def test_not_marked(): assert False
"""


@pytest.fixture
def portability(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("portability")


def test_a_setting_reaches_the_tests_and_failures_are_counted(portability: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(TESTS)
    one = portability.Setting("one", {"OMP_NUM_THREADS": "1"})
    row = portability.run(one, [str(file)], "bits", "0")
    assert (row["code"], row["passed"], row["failed"], row["found"]["threads"]) == (1, 1, 1, 1)
    assert [line.split("::")[1].split()[0] for line in row["failures"]] == ["test_bad"]
    missing = portability.Setting("other", needs="no-such-flag")
    assert portability.run(missing, [str(file)], None, "0")["left_out"] == "this CPU has no no-such-flag"
    portability._write(tmp_path, [row], tests=[], marked=None, commit="abc")
    page = (tmp_path / "portability.md").read_text()
    assert "| 1 | 1 | 0 |" in page
    assert json.loads((tmp_path / "portability.json").read_text())["settings"][0]["failed"] == 1


def test_busy_processes_end_with_their_block(portability: ModuleType) -> None:
    with portability.busy(2):
        children = [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
        assert len(children) >= 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in children[-2:])


def test_unknown_settings_are_refused(portability: ModuleType) -> None:
    with pytest.raises(SystemExit, match="expected some of default, one-thread, .*, got pentium"):
        portability._chosen("oldest,pentium")
    assert [setting.name for setting in portability._chosen("zen,oldest")] == ["zen", "oldest"]
