"""Fleet-level verdicts on effects whose truth is known: false discoveries, rare labels, drift, heterogeneity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oscar_causal.discovery.evidence import GROUPS, FleetEvidence, _sum, empty_evidence, fixed
from oscar_causal.errors import UsageError
from oscar_causal.graph.drift import DRIFT_SCHEMA, drift
from oscar_causal.graph.population import BOUNDARY_SCHEMA, PopulationConfig, boundaries

SE = 0.15


def evidence(rows: list[tuple[str, str, float, int, int]], seed: int = 0) -> FleetEvidence:
    """(label, event, mean effect, sequences, window); effects vary by 0.1 and are measured with SE."""
    rng = np.random.default_rng(seed)
    parts = []
    for label, event, mean, number, window in rows:
        effect = np.clip(rng.normal(mean, 0.1, number) + rng.normal(0, SE, number), -1, 1)
        ones = np.ones(number, np.int64)
        columns: dict[str, Any] = {
            "label": [label] * number, "event": [event] * number, "window": (window * ones).astype(np.int32),
            "group": rng.integers(0, GROUPS, number).astype(np.int32), "present": ones, "tested": ones,
            "effect": fixed(effect), "effect_square": fixed(effect**2), "noise": fixed(np.full(number, SE**2)),
            "noisy": ones, "causes": 0 * ones, "inhibitors": 0 * ones,
        }  # fmt: skip
        parts.append(pa.table(columns, schema=empty_evidence().pairs.schema))
    return FleetEvidence(_sum("pairs", parts), empty_evidence().cells, empty_evidence().labels)


def verdicts(table: pa.Table) -> dict[str, str]:
    return dict(zip(table["event"].to_pylist(), table["verdict"].to_pylist(), strict=True))


def test_verdicts_of_clear_cases() -> None:
    rows = [
        ("y", "cause", 0.4, 60, 0),
        ("y", "blocker", -0.4, 60, 0),
        ("y", "nothing", 0.0, 4000, 0),
        ("y", "small", 0.03, 4000, 0),
    ]
    found = boundaries(evidence([*rows, ("y", "rare", 0.5, 2, 0), ("y", "noisy", 0.1, 8, 0)]))
    assert found.schema.equals(BOUNDARY_SCHEMA)
    assert verdicts(found) == {
        "cause": "cause",
        "blocker": "inhibitor",
        "nothing": "no effect",
        "small": "no effect",  # 4,000 sequences tell 0.03 from 0, and it still does not matter
        "rare": "too few",
        "noisy": "undecided",
    }
    row = next(row for row in found.to_pylist() if row["event"] == "cause")
    assert row["ci_low"] < 0.4 < row["ci_high"]
    assert row["effect_sd"] == pytest.approx(0.1, abs=0.06)
    assert (row["present"], row["tested"]) == (60, 60)


def test_false_discoveries_over_all_pairs_stay_below_alpha() -> None:
    null = [(f"y{k % 7}", f"n{k}", 0.05, 30, 0) for k in range(400)]  # on the edge of the null
    true = [("y0", f"c{k}", 0.3, 30, 0) for k in range(60)]
    wrong, found = 0, 0
    for seed in range(2):
        table = boundaries(evidence(null + true, seed), PopulationConfig(alpha=0.1))
        accepted = [event for event, verdict in verdicts(table).items() if verdict == "cause"]
        wrong += sum(event.startswith("n") for event in accepted)
        found += len(accepted)
    assert found > 2 * 55
    assert wrong / found < 0.12


def test_rare_labels_are_judged_with_wider_uncertainty() -> None:
    table = boundaries(evidence([("y", "often", 0.4, 400, 0), ("z", "seldom", 0.4, 5, 0)])).to_pylist()
    widths = {row["event"]: row["ci_high"] - row["ci_low"] for row in table}
    assert widths["seldom"] > 5 * widths["often"]


def test_a_window_in_which_an_effect_changed_is_flagged_and_others_are_not() -> None:
    steady = [("y", "steady", 0.4, 60, window) for window in range(4)]
    changed = [("y", "changed", 0.0 if window == 3 else 0.5, 60, window) for window in range(4)]
    table = drift(evidence(steady + changed), 365.0, alpha=0.05, delta=0.05)
    assert table.schema.equals(DRIFT_SCHEMA)
    flagged = [(row["event"], row["from"].year) for row in table.to_pylist() if row["changed"]]
    assert ("changed", 1972) in flagged  # the fourth window of 365 days since 1970
    assert all(event == "changed" for event, _ in flagged)
    assert {row["event"] for row in table.to_pylist()} == {"steady", "changed"}


def test_drift_keeps_its_level_without_drift() -> None:
    rows = [("y", f"e{k}", 0.3, 40, window) for k in range(200) for window in range(3)]
    table = drift(evidence(rows), 30.0, alpha=0.05, delta=0.0)
    assert np.mean(np.array(table["p_value"]) <= 0.05) < 0.075
    assert sum(table["changed"].to_pylist()) <= 3


def test_one_window_cannot_drift() -> None:
    assert len(drift(evidence([("y", "e", 0.3, 40, 0)]), 30.0, alpha=0.05, delta=0.0)) == 0


@pytest.mark.parametrize("settings", [{"alpha": 0.0}, {"alpha": 1.5}, {"delta": -0.1}, {"delta": 1.0}])
def test_settings_that_cannot_be_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="expected"):
        PopulationConfig(**settings)
