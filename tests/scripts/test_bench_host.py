"""The measurement of the host's share: all time is shared out, every stage is met, operations are counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from oscar_causal.score.bench.workload import Sizes


@pytest.fixture
def host(script: Callable[[str], ModuleType]) -> Any:
    return script("bench_host")


@pytest.mark.parametrize(("estimator", "stages"), [("intervention", {"tests", "contexts"}), ("prefix", {"evidence"})])
def test_all_time_is_shared_out(host: Any, estimator: str, stages: set[str]) -> None:
    sizes = Sizes(events=200, labels=5, mean_length=40.0, sd_length=5.0, longest=60, sequences=25)
    found = host.host_milliseconds(sizes, host.CONFIGS[estimator])
    total = found.pop("total")
    assert sum(found.values()) == pytest.approx(total, rel=0.1, abs=0.5)
    assert stages <= set(found)


def test_time_goes_to_the_innermost_stage(host: Any) -> None:
    def burn(seconds: float) -> None:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    def draw_from() -> None:
        burn(0.1)

    def focus_stage() -> None:
        burn(0.2)
        draw_from()

    sampler = host.Sampler()
    with sampler.at_work():
        focus_stage()
        burn(0.05)
    for stage, seconds in {"tests": 0.2, "law": 0.1, "rest": 0.05}.items():
        assert sampler.seconds[stage] == pytest.approx(seconds, abs=0.02)


def test_stages_are_names_of_functions_that_exist(host: Any) -> None:
    from oscar_causal.discovery import (
        contexts,
        device_contexts,
        doubt,
        finalists,
        intervention,
        looks,
        prefix,
        removal,
        subject,
    )

    modules = [contexts, device_contexts, doubt, finalists, intervention, looks, prefix, removal, subject, host]
    for name in host.STAGE_OF:
        assert any(hasattr(module, name) for module in (*modules, intervention._Judge)), name


def test_operations_are_counted_by_folder(host: Any) -> None:
    found = host.device_operations(host.CONFIGS["prefix"], 3)
    assert set(found) == {"density", "discovery"}
    assert all(count > 10 for count in found.values())
