"""What rule recovery hands back: one immutable proposal per label, with everything a doubting reader asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from oscar_causal.errors import UsageError
from oscar_causal.graph.rules.twins import Twin

Status = Literal["proposed", "not identifiable from this data", "too few positives"]
Method = Literal["truth table", "stepwise", "patterns", "observations", "none"]
Role = Literal["cause", "blocker", "both", "none"]
NONE: Status = "not identifiable from this data"


@dataclass(frozen=True)
class Share:
    """`hits` of `of`, with the Wilson interval at 95 % (0 to 1 where nothing was counted)."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        """The share itself; None where nothing was counted."""
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper limit.

        >>> [round(limit, 3) for limit in Share(49, 50).interval]
        [0.895, 0.996]
        """
        if not self.of:
            return 0.0, 1.0
        from scipy.stats import binomtest

        limits = binomtest(self.hits, self.of).proportion_ci(method="wilson")
        return float(limits.low), float(limits.high)

    def to_json(self) -> dict[str, Any]:
        """Share, limits and counts."""
        low, high = self.interval
        return {"share": self.value, "low": low, "high": high, "hits": self.hits, "of": self.of}


@dataclass(frozen=True)
class Fidelity:
    """How a rule fares on sequences that had no say in it."""

    agreement: Share
    """Labelled held-out sequences in which rule and observed label agree. Near 1 for any rare label: see the others."""
    precision: Share
    """Of those where the rule holds: with the label."""
    recall: Share
    """Of those with the label: where the rule holds."""
    model: Share
    """Of a sample (half where rule or label holds, half others with an event of the rule): the model's own prediction,
    P > 0.5, agrees with the rule."""

    def to_json(self) -> dict[str, Any]:
        """Four shares."""
        return {name: share.to_json() for name, share in vars(self).items()}


@dataclass(frozen=True)
class Cell:
    """One line of a truth table: these candidates present, the other candidates absent."""

    present: tuple[str, ...]
    probability: float
    """Mean P(label) of the model over the backgrounds."""
    sd: float
    """Between backgrounds and insertions: large where presence alone does not decide."""
    sequences: int
    """Labelled sequences that show exactly this pattern."""
    positives: int
    """Those among them with the label."""
    holds: bool
    """What the rule says."""


@dataclass(frozen=True)
class CandidateRole:
    """What became of one candidate."""

    event: str
    role: Role
    effect: float | None
    """Mean change of P(label) when it is inserted, over the other candidates' patterns; None where not measured."""
    seen_with: int
    """Mined sequences in which its part of the rule holds and the rule would say otherwise if it did not."""
    seen_without: int
    """Mined sequences in which its part of the rule fails and the rule would say otherwise if it did not."""


@dataclass(frozen=True)
class RuleProposal:
    """The rule proposed for one label, or why there is none."""

    label: str
    status: Status
    rule: str | None
    """In the grammar of `docs/formats.md`; also given, as the best guess, where it is not identifiable."""
    confidence: float
    """Between 0 and 1; how often rules stated so were right is measured in `docs/rules.md`. 0 without a rule."""
    positives: int
    """Sequences with the label that rule recovery looked at."""
    method: Method
    reasons: tuple[str, ...] = ()
    """Why the status is what it is."""
    fidelity: Fidelity | None = None
    rule_without_label: tuple[str, ...] = ()
    """Counter-examples: ids of held-out sequences where the rule holds and the label was not observed."""
    label_without_rule: tuple[str, ...] = ()
    """Counter-examples: ids of held-out sequences with the label where the rule does not hold."""
    roles: tuple[CandidateRole, ...] = ()
    cells: tuple[Cell, ...] = ()
    twins: tuple[Twin, ...] = ()
    """Parts of the rule that something else explains as well: such a rule is not stated."""

    def to_json(self) -> dict[str, Any]:
        """For `rules.json` of a population folder and for `--json`."""
        return {**asdict(self), "fidelity": self.fidelity.to_json() if self.fidelity else None}


def calibration(
    proposals: Sequence[RuleProposal], right: Mapping[str, bool], edges: Sequence[float] = (0.0, 0.5, 0.8, 0.9, 0.95)
) -> list[dict[str, Any]]:
    """Share of right rules among those proposed, by stated confidence (from each edge up to the next, the last to 1).

    >>> proposals = [RuleProposal("a", "proposed", "A", 0.9, 50, "truth table")]
    >>> calibration(proposals, {"a": True}, edges=(0.0, 0.5))[-1]["right"]["share"]
    1.0
    """
    if list(edges) != sorted(set(edges)) or not all(0 <= edge < 1 for edge in edges):
        raise UsageError(f"calibration: expected rising edges from 0 up to 1, got {list(edges)}")
    stated = [p for p in proposals if p.status == "proposed" and p.label in right]
    rows = []
    for low, high in zip(edges, [*edges[1:], float("inf")], strict=True):
        inside = [p for p in stated if low <= p.confidence < high]
        mean = sum(p.confidence for p in inside) / len(inside) if inside else None
        share = Share(sum(right[p.label] for p in inside), len(inside))
        rows.append({"from": low, "to": min(high, 1.0), "mean_confidence": mean, "right": share.to_json()})
    return rows
