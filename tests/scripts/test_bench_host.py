"""The measurement of the host's share: all time is shared out, every stage is met, operations are counted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

import pytest

from oscar_causal.score.bench.workload import Sizes


@pytest.fixture
def host(script: Callable[[str], ModuleType]) -> Any:
    return script("bench_host")


@pytest.fixture
def tiny() -> Sizes:
    return Sizes(events=200, labels=5, mean_length=40.0, sd_length=5.0, longest=60, sequences=5)


def test_all_time_is_shared_out(host: Any, tiny: Sizes) -> None:
    found = host.host_milliseconds(tiny, host.CONFIGS["intervention"])
    total = found.pop("total")
    assert 0 < sum(found.values()) <= total
    assert set(found) <= {*host.STAGES, "rest"}


@pytest.mark.parametrize(("estimator", "stages"), [("intervention", {"tests", "contexts"}), ("prefix", {"evidence"})])
def test_a_run_passes_through_its_stages(host: Any, tiny: Sizes, estimator: str, stages: set[str]) -> None:
    met: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            met.add(host.STAGE_OF.get(frame.f_code.co_name, "rest"))

    sys.setprofile(note)
    try:
        host.host_milliseconds(tiny, host.CONFIGS[estimator])
    finally:
        sys.setprofile(None)
    assert stages | {"law", "rest"} <= met


def test_time_goes_to_the_innermost_stage(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now, sampler = 0.0, host.Sampler()
    monkeypatch.setattr(host.time, "process_time", lambda: now)

    def burn(seconds: float) -> None:
        nonlocal now
        now += seconds
        sampler.look(0, sys._getframe())

    def draw_from() -> None:
        burn(1.0)

    def focus_stage() -> None:
        burn(2.0)
        draw_from()

    focus_stage()
    burn(0.5)
    assert sampler.seconds == {"tests": 2.0, "law": 1.0, "rest": 0.5}


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
