"""Does a rule hold? Answered for a whole batch of sequences at once."""

from __future__ import annotations

from oscar_causal.data.rules.index import EventIndex, Mask
from oscar_causal.data.rules.tree import And, Not, Or, Rule


def evaluate(rule: Rule, index: EventIndex) -> Mask:
    """Per sequence of the batch, whether the rule holds: bool (n,).

    `A then B` needs an A at a strictly earlier *time*: events of one timestamp have no order, so the order in which a
    tie was written down never decides. Only a batch without times is read by position.

    >>> import numpy as np
    >>> from oscar_causal.data.rules import parse
    >>> index = EventIndex(np.array([0, 2, 4]), np.array([0, 1, 1, 0]), np.array([0.0, 9, 0, 9]), {"A": 0, "B": 1})
    >>> evaluate(parse("A then B"), index).tolist(), evaluate(parse("A & B & !C"), index).tolist()
    ([True, False], [True, True])
    """
    match rule:
        case Not(item):
            mask = evaluate(item, index)
            return ~mask
        case And(items):
            mask = evaluate(items[0], index)
            for item in items[1:]:
                mask &= evaluate(item, index)
            return mask
        case Or(items):
            mask = evaluate(items[0], index)
            for item in items[1:]:
                mask |= evaluate(item, index)
            return mask
        case _:
            return index.holds(rule)
