"""Accepted events one by one against the dataset's reasons: are signs right, and do q-values keep their word?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oscar_causal.score.matching import Pair, Roles

ROLE_OF = {"cause": "cause", "inhibitor": "blocker"}
"""Verdict -> the role that makes it right."""
Q_LIMITS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Accepted:
    """One accepted event of an explained pair."""

    pair: Pair
    event: str
    verdict: str
    q_value: float | None = None
    by: str | None = None
    """`test` or `score` (`EventEvidence.accepted_by`); None = the estimator does not say."""


def sign_agreement(accepted: Sequence[Accepted], roles: Roles) -> dict[str, Any]:
    """Of the accepted events that the dataset names for their pair: does cause or inhibitor agree with the role?

    >>> found = [Accepted(("1", "x"), "A", "cause"), Accepted(("1", "x"), "B", "cause")]
    >>> sign_agreement(found, {("1", "x"): {"A": ("cause", True), "B": ("blocker", False)}})["agreement"]
    0.5
    """
    table = Counter(
        (item.verdict, roles[item.pair][item.event][0]) for item in accepted if item.event in roles.get(item.pair, {})
    )
    total = sum(table.values())
    right = sum(number for (verdict, role), number in table.items() if ROLE_OF[verdict] == role)
    named = {f"{verdict} found, {role} true": table[verdict, role] for verdict in ROLE_OF for role in ROLE_OF.values()}
    return {"events": total, "agreement": right / total if total else None, "table": named}


def q_calibration(accepted: Sequence[Accepted], explained: Sequence[Pair], roles: Roles) -> dict[str, Any]:
    """False discoveries in the world: accepted events that the dataset does not name in that role for their pair.

    `proportion` is over all accepted events, `rate` the mean over explained pairs of each pair's proportion (0 where
    nothing was accepted): what a false discovery rate bounds. A q-value promises something about the model's
    prediction; how far that carries is what these figures say (`by_q`, without events that were accepted by score: no
    test speaks for those). A label without any reason is false, and so is everything found for it (`on_false_labels`).
    """
    tested = [item for item in accepted if item.by != "score"]
    return {
        **_proportion(accepted, explained, roles),
        "on_false_labels": sum(item.pair not in roles for item in accepted),
        "by_q": [
            {"q_up_to": limit, **_proportion(_within(tested, limit), explained, roles)}
            for limit in _useful_limits(tested)
        ],
    }


def _useful_limits(accepted: Sequence[Accepted]) -> list[float]:
    """From the first limit that lets an event in to the first that lets all in."""
    values = [item.q_value for item in accepted if item.q_value is not None]
    if not values:
        return []
    below = [limit for limit in Q_LIMITS if min(values) <= limit]
    enough = [limit for limit in below if max(values) <= limit]
    return [limit for limit in below if not enough or limit <= enough[0]]


def _within(accepted: Sequence[Accepted], limit: float) -> list[Accepted]:
    return [item for item in accepted if item.q_value is not None and item.q_value <= limit]


def _proportion(accepted: Sequence[Accepted], explained: Sequence[Pair], roles: Roles) -> dict[str, Any]:
    wrong: dict[Pair, list[bool]] = defaultdict(list)
    for item in accepted:
        role, _ = roles.get(item.pair, {}).get(item.event, (None, False))
        wrong[item.pair].append(role != ROLE_OF[item.verdict])
    false = sum(sum(marks) for marks in wrong.values())
    shares = [sum(marks) / len(marks) for marks in wrong.values()]
    return {
        "accepted": len(accepted),
        "false": false,
        "proportion": false / len(accepted) if accepted else None,
        "rate": sum(shares) / len(explained) if explained else None,
    }
