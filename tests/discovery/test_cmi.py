"""Information in nats against scipy, sums over the joint table, and the bounds that theory gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from oscar_causal.discovery.cmi import EPSILON, bernoulli_entropy, bernoulli_kl, paired_cmi

inner = st.floats(0.001, 0.999)
whole = st.floats(0, 1)


@given(p=inner, q=inner)
def test_kl_is_scipys(p: float, q: float) -> None:
    wanted = scipy.special.rel_entr([p, 1 - p], [q, 1 - q]).sum()
    assert bernoulli_kl(np.array(p), np.array(q)) == pytest.approx(wanted, abs=1e-12)


@given(p=inner)
def test_entropy_is_scipys(p: float) -> None:
    assert bernoulli_entropy(np.array(p)) == pytest.approx(scipy.stats.entropy([p, 1 - p]), abs=1e-12)


@given(p=whole, q=whole)
def test_kl_is_finite_and_never_negative_even_at_the_ends(p: float, q: float) -> None:
    value = float(bernoulli_kl(np.array(p), np.array(q)))
    assert -1e-15 <= value <= -math.log(EPSILON)
    assert p != q or value == 0.0


def test_clipping_is_the_documented_one() -> None:
    got = float(bernoulli_kl(np.array(1.0), np.array(0.0)))
    e = EPSILON
    assert got == pytest.approx((1 - e) * math.log((1 - e) / e) + e * math.log(e / (1 - e)), rel=1e-9)


@given(st.lists(st.tuples(inner, inner), min_size=1, max_size=6))
def test_paired_cmi_is_the_sum_over_the_joint_table(pairs: list[tuple[float, float]]) -> None:
    """I(Y; X | Z) = sum p(z, x, y) log p(x, y | z) / (p(x | z) p(y | z)), Z uniform over contexts, X a fair coin."""
    total = 0.0
    for kept, removed in pairs:
        joint = {(x, y): 0.5 * (p if y else 1 - p) for x, p in ((1, kept), (0, removed)) for y in (0, 1)}
        marginal = {y: joint[1, y] + joint[0, y] for y in (0, 1)}
        total += sum(p * math.log(p / (0.5 * marginal[y])) for (_, y), p in joint.items()) / len(pairs)
    kept, removed = np.array(pairs).T
    assert paired_cmi(kept, removed) == pytest.approx(total, abs=1e-10)


@given(p=whole, q=whole)
@example(p=0.0, q=1e-5)
def test_paired_cmi_lies_between_zero_and_log_two(p: float, q: float) -> None:
    value = paired_cmi(np.array([p]), np.array([q]))
    assert -1e-12 <= value <= math.log(2) + 1e-12
    assert value == pytest.approx(paired_cmi(np.array([q]), np.array([p])), abs=1e-12)
