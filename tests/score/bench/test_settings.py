"""Quick and full settings, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from oscar_causal.errors import UsageError
from oscar_causal.score.bench.settings import QUICK, bench_settings


def test_what_is_given_wins_over_quick() -> None:
    quick = bench_settings(Path("out"), quick=True, test=10, runs=None)
    assert (quick.fleet, quick.test, quick.runs) == ("demo", 10, QUICK["runs"])
    full = bench_settings(Path("out"))
    assert full.fleet == "hard"
    assert full.repeats(10) == 10
    assert quick.repeats(10) == QUICK["runs"]


def test_places() -> None:
    assert bench_settings(Path("out")).work_folder == Path("out/work")
    assert bench_settings(Path("out"), work=Path("w")).work_folder == Path("w")
    assert bench_settings(Path("out"), dataset=Path("data/cars")).fleet_name == "cars"


@pytest.mark.parametrize(
    "given", [{"test": 0}, {"runs": 0}, {"time_limit": 0.0}, {"workers": 0}, {"seed": -1}, {"colour": "red"}]
)
def test_what_cannot_be_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(given)).replace("_", " ")):
        bench_settings(Path("out"), **given)
