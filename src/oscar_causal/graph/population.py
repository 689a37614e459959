"""From many sequences to one boundary per label: mean effect of each event with its uncertainty, and whether it varies.

All from the sums of `evidence`; the statistics are in `discovery.pooling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.discovery.evidence import FleetEvidence
from oscar_causal.discovery.pooling import LEAST_GROUPS, GroupedMean, fleet_q_values, pair_sums, spread
from oscar_causal.errors import UsageError

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PopulationConfig:
    """What counts as a member of a label's boundary."""

    alpha: float = 0.05
    """False discovery rate over all (label, event) pairs."""
    delta: float = 0.05
    """Tests ask whether the mean effect is larger than this; with many sequences everything differs from zero."""

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha: expected between 0 and 1, got {self.alpha}")
        if not 0 <= self.delta < 1:
            raise UsageError(f"delta: expected 0 up to 1, got {self.delta}")


BOUNDARY_SCHEMA = pa.schema(
    [
        ("label", pa.string()),
        ("event", pa.string()),
        ("verdict", pa.string()),
        ("present", pa.int64()),
        ("tested", pa.int64()),
        ("groups", pa.int32()),
        ("effect", pa.float64()),
        ("se", pa.float64()),
        ("ci_low", pa.float64()),
        ("ci_high", pa.float64()),
        ("p_value", pa.float64()),
        ("q_value", pa.float64()),
        ("effect_sd", pa.float64()),
        ("effect_sd_low", pa.float64()),
        ("i_squared", pa.float64()),
        ("accepted_share", pa.float64()),
        ("inhibitor_share", pa.float64()),
        ("rate", pa.float64()),
        ("classical", pa.bool_()),
        ("world_p_value", pa.float64()),
        ("seen_without", pa.int64()),
        ("never_without", pa.list_(pa.string())),
    ]
)
"""One row per (label, event) tested at least once. `verdict`: cause, inhibitor, no effect, undecided, too few.
`accepted_share`, `inhibitor_share`: of the sequences in which it was tested, those that accepted it as a cause, as an
inhibitor. `seen_without`, `never_without`: see `graph.variants`."""


def boundaries(
    evidence: FleetEvidence,
    config: PopulationConfig | None = None,
    *,
    rates: Any = None,
    members: Any = None,
    world: Any = None,
) -> pa.Table:
    """Fleet-level verdicts on every tested (label, event), false discoveries controlled over all pairs together.

    `rates`, `members`, `world`: functions (label, event) -> number, bool or None, for the columns of other sources.
    """
    config = config or PopulationConfig()
    sums = pair_sums(evidence.pairs)
    number = np.maximum(sums.tested.sum(1), 1)
    mean = sums.mean_effect()
    q_values = fleet_q_values(mean, config.delta)
    low, high = mean.interval(1 - config.alpha)
    sd, sd_low, share = spread(sums)
    verdict = _verdicts(mean, q_values, (low, high), config)
    keys = list(zip(sums.labels, sums.events, strict=True))
    columns = {
        "label": sums.labels,
        "event": sums.events,
        "verdict": verdict,
        "present": sums.present.sum(1),
        "tested": sums.tested.sum(1),
        "groups": mean.groups,
        "effect": mean.mean,
        "se": mean.se,
        "ci_low": low,
        "ci_high": high,
        "p_value": mean.p_values(config.delta),
        "q_value": q_values,
        "effect_sd": sd,
        "effect_sd_low": sd_low,
        "i_squared": share,
        "accepted_share": sums.causes.sum(1) / number,
        "inhibitor_share": sums.inhibitors.sum(1) / number,
        "rate": [None if rates is None else rates(*key) for key in keys],
        "classical": [None if members is None else members(*key) for key in keys],
        "world_p_value": [None if world is None else world(*key) for key in keys],
        "seen_without": [None] * len(keys),
        "never_without": [None] * len(keys),
    }
    return pa.table(columns, schema=BOUNDARY_SCHEMA)


def _verdicts(
    mean: GroupedMean, q_values: Float64, interval: tuple[Float64, Float64], config: PopulationConfig
) -> list[str]:
    found = q_values <= config.alpha
    small = (interval[0] >= -config.delta) & (interval[1] <= config.delta)
    names = np.select(
        [mean.groups < LEAST_GROUPS, found & (mean.mean > 0), found, small],
        ["too few", "cause", "inhibitor", "no effect"],
        "undecided",
    )
    return [str(name) for name in names]
