"""Ready-made processes, one per question that an estimator must answer; each tabulates in milliseconds."""

from __future__ import annotations

from dataclasses import replace

from oscar_causal.data.solvable.config import Effect, HiddenDriver, LabelLaw, Pull, SolvableConfig
from oscar_causal.data.solvable.process import SolvableProcess
from oscar_causal.errors import UsageError


def _fault(*effects: tuple[str, float], base: float = 0.05, name: str = "fault", hidden: float = 0.0) -> LabelLaw:
    return LabelLaw(name, base, tuple(Effect(rule, size) for rule, size in effects), hidden)


_PLAIN = SolvableConfig(
    length=6,
    events=("A", "B", "C"),
    labels=(_fault(("A & B", 0.9)),),
    inert=100,
    inert_weight=0.7,
    inert_tail=0.5,
    memory=0.5,
)

EXAMPLES: dict[str, SolvableConfig] = {
    # Boolean, temporal and counting rules over A and B; C is relevant to other events but to no label.
    "and": _PLAIN,
    "or": replace(_PLAIN, labels=(_fault(("A | B", 0.8)),), weights=(-1.0, -1.0, 0.0)),
    "not": replace(_PLAIN, labels=(_fault(("A & !B", 0.8)),)),
    "xor": replace(_PLAIN, labels=(_fault(("(A & !B) | (!A & B)", 0.8)),)),
    "order": replace(_PLAIN, labels=(_fault(("A then B", 0.8)),)),
    "count": replace(_PLAIN, labels=(_fault(("A >= 2", 0.8)),), repeat=0.7),
    # Effects from nothing to strong, and the same for a label that is common.
    "graded": replace(
        _PLAIN,
        events=("A", "B", "C", "D"),
        labels=(
            _fault(("A", 0.0), ("B", 0.005), ("C", 0.05), ("D", 0.5), base=0.1),
            _fault(("A", 0.0), ("B", -0.005), ("C", -0.05), ("D", 0.45), base=0.5, name="common"),
        ),
    ),
    # N makes A likely to follow and does nothing else. The order-2 part is explicit, so that nothing else matters.
    "announcer": replace(
        _PLAIN,
        events=("A", "B", "N"),
        labels=(_fault(("A", 0.8)),),
        pulls=(Pull("N", "A", 3.0), Pull("N", "A", 1.0, lag=2)),
        weights=(-1.5, 0.0, 0.0),
        memory=0.0,
    ),
    # A works through M alone, or through M and on its own.
    "mediator": replace(
        _PLAIN,
        events=("A", "M", "B"),
        labels=(_fault(("M", 0.8)), _fault(("M", 0.4), ("A", 0.3), name="both")),
        pulls=(Pull("A", "M", 2.5), Pull("A", "M", 1.0, lag=2)),
        weights=(0.0, -1.5, 0.0),
        memory=0.0,
    ),
    # The driver G brings the cause A next and the symptom S after it.
    "symptom": replace(
        _PLAIN,
        events=("A", "S", "G"),
        labels=(_fault(("A", 0.8)),),
        pulls=(Pull("G", "A", 4.0), Pull("G", "S", 4.0, lag=2)),
        weights=(-2.5, -2.5, -1.0),
        memory=0.0,
    ),
    # A coin that nobody sees raises both D and the label; A is the only parent.
    "hidden": replace(
        _PLAIN,
        events=("A", "D", "B"),
        labels=(_fault(("A", 0.3), hidden=0.6),),
        pulls=(Pull("B", "A", 1.0, lag=2),),
        memory=0.0,
        hidden=HiddenDriver(rate=0.3, event="D", low=0.05, high=0.4),
    ),
    # B nearly always comes with A, and either is enough: leaving one out shows nothing, leaving both out everything.
    "redundant": replace(
        _PLAIN,
        labels=(_fault(("A | B", 0.9)),),
        pulls=(Pull("A", "B", 4.0), Pull("B", "A", 4.0, lag=2)),
        weights=(-2.0, -2.0, 0.0),
    ),
    # One sequence in a thousand has the label without its causes, and the causes are rare themselves.
    "rare": replace(_PLAIN, labels=(_fault(("A & B", 0.9), base=0.001),), weights=(-3.0, -2.0, 0.0)),
    # Positions 1 and 2 share a timestamp, so do 3 and 4.
    "ties": replace(_PLAIN, labels=(_fault(("A then B", 0.8)), _fault(("A & B", 0.8), name="both")), tied=(2, 4)),
}


def example(name: str) -> SolvableProcess:
    """A ready-made process by name; `EXAMPLES` lists them.

    >>> example("xor").signs(0)
    {0: 0, 1: 0}
    """
    if name not in EXAMPLES:
        raise UsageError(f"solvable example: expected one of {', '.join(EXAMPLES)}, got {name!r}")
    return SolvableProcess(EXAMPLES[name])
