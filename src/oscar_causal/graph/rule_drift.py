"""Does a rule change with time? As a whole, window by window of `start`; part by part, before and after any date.

Of the whole rule two shares are compared between a window and all others: of the sequences where the rule holds, those
with the label; of those with the label, those where the rule holds. Where one of them changed, the window's own rule is
recovered from its sequences alone. A rule that lists an old and a new alternative fits every window alike: so each part
is looked at where it alone decides, see `rules.changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.data.rules import evaluate, parse
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.evidence import GROUPS, NO_WINDOW, start_windows, subject_groups
from oscar_causal.discovery.pooling import LEAST_GROUPS, GroupedMean, grouped_mean
from oscar_causal.discovery.significance import benjamini_hochberg
from oscar_causal.graph.drift import difference_p_value, window_dates
from oscar_causal.graph.part_drift import Row, part_rows, write_rules
from oscar_causal.graph.rules.changes import Dated
from oscar_causal.graph.rules.expert import compare_with_expert
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.graph.rules.proposal import RuleProposal

Bool = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]
Recover = Callable[[Dataset, str], RuleProposal]
"""The rule of a label, from these sequences alone."""

RULE_DRIFT_SCHEMA = pa.schema(
    [
        ("label", pa.string()),
        ("rule", pa.string()),
        ("from", pa.timestamp("s", tz="UTC")),
        ("to", pa.timestamp("s", tz="UTC")),
        ("positives", pa.int64()),
        ("precision", pa.float64()),
        ("precision_elsewhere", pa.float64()),
        ("recall", pa.float64()),
        ("recall_elsewhere", pa.float64()),
        ("p_value", pa.float64()),
        ("q_value", pa.float64()),
        ("changed", pa.bool_()),
        ("rule_here", pa.string()),
        ("relation", pa.string()),
        ("part", pa.string()),
        ("says", pa.bool_()),
        ("until", pa.timestamp("s", tz="UTC")),
        ("decided", pa.int64()),
        ("came", pa.int64()),
        ("decided_elsewhere", pa.int64()),
        ("came_elsewhere", pa.int64()),
        ("rule_elsewhere", pa.string()),
    ]
)
"""One row per (label, window) with enough subjects in the window and outside. `rule_here`: where changed, the rule of
the window's sequences alone, as far as one is found; `relation`: what it is beside the rule of all windows.

And one row per (label, `part`) of the rule that alone decides somewhere, from the likeliest date of a change (after
`until`, not after `from`) to the end of the data: of the `decided` sequences the label `came` in so many; `elsewhere` =
before. `says`: the rule's word there. `rule_here`, `rule_elsewhere`: the rule without the parts that do not work after,
before. Where the label always came, or never, `from` is the start of the first and nothing is before."""


@dataclass(frozen=True)
class Windows:
    """The labelled sequences of a fleet with window and group of subjects of each."""

    data: Dataset
    window: Int64
    group: Int64

    @classmethod
    def of(cls, dataset: Dataset, window_days: float | None) -> Windows:
        """Sequences without labels known, or without a start, say nothing here; without days there is one window."""
        known = dataset.start.is_valid().to_numpy(zero_copy_only=False)
        data = dataset.take(dataset.labelled & known & (start_windows(dataset.start, window_days) != NO_WINDOW))
        return cls(data, start_windows(data.start, window_days), subject_groups(data.subject_ids))

    @cached_property
    def dated(self) -> Dated:
        """The same sequences, to be looked at before and after dates."""
        return Dated(self.data)

    def numbers(self) -> list[int]:
        """The windows there are; none where there is only one."""
        found = sorted(set(self.window.tolist()))
        return found if len(found) > 1 else []

    def share(self, hits: Bool, among: Bool) -> GroupedMean:
        """Share of hits among some sequences, clustered by group of subjects; its error at least the binomial one."""
        total = np.bincount(self.group[hits & among], minlength=GROUPS).astype(np.float64)
        count = np.bincount(self.group[among], minlength=GROUPS).astype(np.int64)
        number = int(count.sum())
        smooth = (total.sum() + 0.5) / (number + 1)
        return grouped_mean(total[None], count[None], np.array([smooth * (1 - smooth) / max(number, 1)]))


def rule_drift(
    rules: Mapping[str, str],
    dataset: Dataset,
    window_days: float | None,
    *,
    recover: Recover | None = None,
    alpha: float = 0.05,
    delta: float = 0.05,
) -> pa.Table:
    """Windows in which a rule fits by more than `delta` worse or better than in all others, and parts of it that
    changed by more than `delta` at some date; see the schema.

    False discoveries are controlled over all rows. `recover` finds the rules of windows that changed. Without
    `window_days` only parts are looked at.
    """
    windows = Windows.of(dataset, window_days)
    rows: list[Row] = []
    for label, rule in sorted(rules.items()) if len(windows.data) else ():
        rows += [*_rows(windows, label, rule, delta), *part_rows(windows.dated, label, rule)]
    q_values = benjamini_hochberg(np.array([row["p_value"] for row in rows])) if rows else np.zeros(0)
    changes: dict[str, list[Row]] = {}
    for row, q in zip(rows, q_values.tolist(), strict=True):
        row |= {"q_value": q, "changed": q <= alpha}
        if "change" in row:
            row["changed"] &= abs(row["change"].difference) > delta
            changes.setdefault(row["label"], []).append(row)
        elif window_days is not None:
            number = row.pop("window")
            row |= window_dates(number, window_days)
            if row["changed"] and recover is not None:
                row |= _rule_here(recover, windows, number, row["label"], row["rule"])
    for label, parts in changes.items():
        write_rules(windows.dated, label, parts)
    return pa.Table.from_pylist(rows, schema=RULE_DRIFT_SCHEMA)


def _rows(windows: Windows, label: str, rule: str, delta: float) -> list[Row]:
    mined = windows.dated.mined
    holds, came = evaluate(parse(rule), mined.index), mined.with_label(label)
    rows: list[Row] = []
    for number in windows.numbers():
        inside = windows.window == number
        figures, p_values = _compare(windows, (holds, came), inside, delta)
        if p_values:
            p = min(1.0, len(p_values) * min(p_values))
            positives = int((came & inside).sum())
            rows.append(
                {"label": label, "rule": rule, "window": number, "positives": positives, **figures, "p_value": p}
            )
    return rows


def _compare(
    windows: Windows, facts: tuple[Bool, Bool], inside: Bool, delta: float
) -> tuple[dict[str, float], list[float]]:
    """Both shares inside and elsewhere, and a p-value for each that has enough subjects on both sides."""
    holds, came = facts
    figures: dict[str, float] = {}
    p_values = []
    for name, hits, among in (("precision", came, holds), ("recall", holds, came)):
        here, there = windows.share(hits, among & inside), windows.share(hits, among & ~inside)
        if min(int(here.groups[0]), int(there.groups[0])) >= LEAST_GROUPS:
            figures |= {name: float(here.mean[0]), f"{name}_elsewhere": float(there.mean[0])}
            p_values.append(difference_p_value(here, 0, there, 0, delta))
    return figures, p_values


def _rule_here(recover: Recover, windows: Windows, number: int, label: str, rule: str) -> dict[str, str | None]:
    part = windows.data.take(windows.window == number)
    found = recover(part, label)
    if found.rule is None:
        return {"rule_here": None, "relation": None}
    return {"rule_here": found.rule, "relation": compare_with_expert(label, found.rule, rule, Mined(part)).relation}


def changed_rules(table: pa.Table) -> Sequence[str]:
    """Labels whose rule changed in some window."""
    return sorted({row["label"] for row in table.select(["label", "changed"]).to_pylist() if row["changed"]})
