"""Does a boundary change with time? Mean effects by window of `start`, each window against all the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from oscar_causal.discovery.evidence import NO_WINDOW, FleetEvidence
from oscar_causal.discovery.pooling import LEAST_GROUPS, GroupedMean, pair_sums
from oscar_causal.discovery.significance import benjamini_hochberg

Float64 = npt.NDArray[np.float64]

DRIFT_SCHEMA = pa.schema(
    [
        ("label", pa.string()),
        ("event", pa.string()),
        ("from", pa.timestamp("s", tz="UTC")),
        ("to", pa.timestamp("s", tz="UTC")),
        ("tested", pa.int64()),
        ("effect", pa.float64()),
        ("effect_elsewhere", pa.float64()),
        ("p_value", pa.float64()),
        ("q_value", pa.float64()),
        ("changed", pa.bool_()),
    ]
)
"""One row per (label, event, window) with enough subjects in the window and outside. `changed`: q_value <= alpha."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = ((moment.replace(tzinfo=UTC) - _EPOCH) // timedelta(days=1) for moment in (datetime.min, datetime.max))


def drift(evidence: FleetEvidence, window_days: float, *, alpha: float, delta: float) -> pa.Table:
    """Windows in which the mean effect of an event differs by more than `delta` from its mean in all other windows.

    False discoveries are controlled over all rows. Subjects met in both halves make the test cautious, not bold.
    """
    rows: list[dict[str, object]] = []
    windows = sorted(set(evidence.pairs["window"].to_pylist()) - {NO_WINDOW})
    for window in windows if len(windows) > 1 else []:
        inside = pc.equal(evidence.pairs["window"], window)
        rows += _compare(evidence.pairs.filter(inside), evidence.pairs.filter(pc.invert(inside)), window, delta)
    p_values = np.array([row["p_value"] for row in rows], float)
    q_values = benjamini_hochberg(p_values) if len(rows) else p_values
    for row, q in zip(rows, q_values.tolist(), strict=True):
        row |= {**window_dates(row.pop("window"), window_days), "q_value": q, "changed": q <= alpha}
    return pa.Table.from_pylist(rows, schema=DRIFT_SCHEMA)


def window_dates(window: Any, window_days: float) -> dict[str, datetime]:
    """Between which moments a window lies, as far as the calendar goes.

    >>> window_dates(2, 30)["from"].isoformat()
    '1970-03-02T00:00:00+00:00'
    """
    return {"from": moment(window * window_days), "to": moment((window + 1) * window_days)}


def moment(days: float) -> datetime:
    """So many days after the beginning of 1970, as far as the calendar goes."""
    return _EPOCH + timedelta(days=min(max(days, _FIRST), _LAST))


def _compare(inside: pa.Table, outside: pa.Table, window: int, delta: float) -> list[dict[str, object]]:
    here, there = pair_sums(inside), pair_sums(outside)
    mean_here, mean_there = here.mean_effect(), there.mean_effect()
    other = {key: row for row, key in enumerate(zip(there.labels, there.events, strict=True))}
    tested = here.tested.sum(1)
    rows: list[dict[str, object]] = []
    for k, key in enumerate(zip(here.labels, here.events, strict=True)):
        at = other.get(key)
        if at is None or min(mean_here.groups[k], mean_there.groups[at]) < LEAST_GROUPS:
            continue
        rows.append(
            {
                "label": key[0],
                "event": key[1],
                "window": window,
                "tested": int(tested[k]),
                "effect": float(mean_here.mean[k]),
                "effect_elsewhere": float(mean_there.mean[at]),
                "p_value": difference_p_value(mean_here, k, mean_there, at, delta),
            }
        )
    return rows


def difference_p_value(first: GroupedMean, a: int, second: GroupedMean, b: int, delta: float) -> float:
    """Of the null that two means differ by at most delta (Welch's t, at the null's least favourable point)."""
    one, two = float(first.se[a]) ** 2, float(second.se[b]) ** 2
    error = max((one + two) ** 0.5, 1e-12)
    parts = one**2 / (first.groups[a] - 1) + two**2 / (second.groups[b] - 1)
    freedom = (one + two) ** 2 / parts if parts > 0 else float(min(first.groups[a], second.groups[b]) - 1)
    size = abs(float(first.mean[a] - second.mean[b]))
    return min(1.0, float(stats.t.sf((size - delta) / error, freedom) + stats.t.sf((size + delta) / error, freedom)))
