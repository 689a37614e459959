"""Alternatives that brought a label at different times only: together they may be a rule that is true on no day.

Where an old alternative gave way to a new one, no sequence contradicts a rule that lists both, and no share of labels
changes. But the sequences in which one alone decided all began before those in which the other did.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np

from oscar_causal.data.rules import Rule, format_rule
from oscar_causal.data.rules.tree import Atom
from oscar_causal.discovery.contexts import Int64
from oscar_causal.graph.rules.mining import Mined, pivotal

CHANCE = 0.01
"""Two parts stand on either side of a date by chance, if drawing their dates at random does that as often as this."""


def one_after_the_other(rule: Rule, label: str, mined: Mined) -> list[str]:
    """A sentence for every two parts of the rule of which one brought the label only before the other did.

    >>> from oscar_causal.data.rules import parse
    >>> from oscar_causal.data.sequences import from_records
    >>> cars = [("A", "2025-01-0"), ("B", "2025-02-0")]
    >>> data = from_records(
    ...     {"sequence_id": f"{e} {k}", "events": [e], "times": [0], "labels": ["y"], "start": f"{day}{k}T00:00:00Z"}
    ...     for e, day in cars for k in range(1, 6)
    ... )
    >>> one_after_the_other(parse("A | B"), "y", Mined(data))
    ['A brought the label until 2025-01-05 only, B since 2025-02-01 only: the rule may have changed']
    """
    start = mined.dataset.start
    known = start.is_valid().to_numpy(zero_copy_only=False)
    if not known.any():
        return []
    began = start.cast("int64").fill_null(0).to_numpy(zero_copy_only=False)  # microseconds since 1970
    has = mined.with_label(label) & known
    dates = {atom: began[held & has] for atom, (held, _) in pivotal(rule, mined.index).items()}
    pairs = permutations((atom for atom, own in dates.items() if len(own)), 2)
    return [_sentence(a, b, dates) for a, b in pairs if _apart(dates[a], dates[b])]


def _apart(early: Int64, late: Int64) -> bool:
    return bool(early.max() < late.min()) and 1 / math.comb(len(early) + len(late), len(early)) <= CHANCE


def _sentence(a: Atom, b: Atom, dates: dict[Atom, Int64]) -> str:
    until, since = (str(np.datetime64(int(date), "us"))[:10] for date in (dates[a].max(), dates[b].min()))
    names = format_rule(a), format_rule(b)
    return f"{names[0]} brought the label until {until} only, {names[1]} since {since} only: the rule may have changed"
