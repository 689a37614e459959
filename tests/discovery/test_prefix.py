"""The paper's estimator against a literal transcription of its equations and against enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.discovery.cmi import EPSILON
from oscar_causal.discovery.contexts import truncate_law
from oscar_causal.discovery.prefix import (
    PrefixConfig,
    PrefixCurves,
    prefix_curves,
    prefix_evidence,
    sample_pasts,
    threshold,
)
from oscar_causal.errors import UsageError


def clip(p: float) -> float:
    return min(max(p, EPSILON), 1 - EPSILON)


def literal(process: Any, pasts: np.ndarray, label: int, c: int) -> dict[int, tuple[float, float, float]]:
    """position -> (Eq. 4, Eq. 9, its sd over contexts), context by context and position by position."""
    rows = {}
    for i in range(c, pasts.shape[1]):
        gains, shifts = [], []
        for past in pasts:
            before = float(process.label_probs_prefix(past[:i])[label])  # P(Y | z)
            after = float(process.label_probs_prefix(past[: i + 1])[label])  # P(Y | x_i, z)
            p, q = clip(after), clip(before)
            gains.append(p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))  # Eq. 1
            shifts.append(after - before)
        mean = sum(shifts) / len(shifts)
        spread = sum((shift - mean) ** 2 for shift in shifts) / max(1, len(shifts) - 1)
        rows[i] = (sum(gains) / len(gains), mean, math.sqrt(spread))
    return rows


def accepted_positions(rows: dict[int, tuple[float, float, float]], k: float) -> set[int]:
    """Eq. 6 with theta = mu + k * sigma."""
    gains = [row[0] for row in rows.values()]
    mu = sum(gains) / len(gains)
    sigma = math.sqrt(sum((gain - mu) ** 2 for gain in gains) / (len(gains) - 1))
    return {i for i, row in rows.items() if row[0] > mu + k * sigma}


@pytest.mark.parametrize("name", ["and", "order", "announcer", "hidden", "mediator"])
@pytest.mark.parametrize("sampler", ["top-k", "permutation", "none"])
def test_every_position_equals_the_literal_transcription(workshop: Any, name: str, sampler: str) -> None:
    process = workshop.process(name)
    model = workshop.exact(process)
    labels = np.arange(len(process.label_names))
    for k, ids in enumerate(process.sample(3, np.random.default_rng(4)).event_ids):
        config = PrefixConfig(context=1 + k, contexts=9, sampler=sampler, threshold=0.5)
        sequence = workshop.contexts(ids)
        pasts = sample_pasts(model, sequence, config, seed=3, sequence_id=f"s{k}")
        curves = prefix_curves(model, sequence, pasts, labels, config.context)
        assert curves.contexts == len(pasts) == (1 if sampler == "none" else 9)
        names = [process.event_names[e] for e in ids]
        for j in labels:
            rows = literal(process, pasts - SPECIAL_IDS, int(j), config.context)
            for at, row in enumerate(rows.values()):
                got = [curves.cmi_nats[at, j], curves.indicator[at, j], curves.indicator_sd[at, j]]
                assert got == pytest.approx(row, abs=3e-6)  # the model answers in float32
            evidence = prefix_evidence(curves, int(j), names, sequence.times.numpy(), config)
            hits = {position for item in evidence if item.accepted for position in item.positions}
            assert hits == accepted_positions(rows, config.threshold)


def test_endless_contexts_converge_to_enumeration(workshop: Any) -> None:
    process = workshop.process("announcer")
    model = workshop.exact(process)
    ids = np.array([5, 2, 0, 1, 9, 0])
    config = PrefixConfig(context=3, contexts=20_000, top_k=10, top_p=0.9)
    sequence = workshop.contexts(ids)
    pasts = sample_pasts(model, sequence, config, seed=0, sequence_id="s")
    curves = prefix_curves(model, sequence, pasts, np.array([0]), 3)
    proposal = process.proposal(ids, top_k=10, top_p=0.9)
    gain, (mean, sd) = process.eq4(0, ids, 3, proposal)[3:], process.indicator(0, ids, 3, proposal)
    assert curves.indicator[:, 0] == pytest.approx(mean[3:], abs=4.5 * sd[3:].max() / 20_000**0.5 + 1e-6)
    assert curves.indicator_sd[:, 0] == pytest.approx(sd[3:], abs=0.01)
    assert curves.cmi_nats[:, 0] == pytest.approx(gain, abs=0.01)
    assert gain.max() > 0.1


def test_it_lists_the_announcer(workshop: Any) -> None:
    """N does nothing but announce A; the forecast jumps when it comes, so the method calls it a cause."""
    process, ids = workshop.announced()
    model = workshop.exact(process)
    assert process.event_names[2] == "N"
    assert process.true_parents(0) == (0,)
    config = PrefixConfig(context=2, contexts=16)
    sequence = workshop.contexts(ids)
    pasts = sample_pasts(model, sequence, config, seed=0, sequence_id="s")
    curves = prefix_curves(model, sequence, pasts, np.array([0]), 2)
    names = [process.event_names[e] for e in ids]
    found = {item.event: item for item in prefix_evidence(curves, 0, names, sequence.times.numpy(), config)}
    assert found["N"].accepted
    assert found["N"].verdict == "cause"
    assert found["N"].positions == (7,)


def curves_of(gains: list[float], shifts: list[float] | None = None) -> PrefixCurves:
    column = np.array(gains)[:, None]
    shift = np.array(shifts or gains)[:, None]
    return PrefixCurves(column, shift, np.abs(shift) / 3, 4)


def test_repeated_events_are_folded_and_the_strongest_occurrence_speaks() -> None:
    curves = curves_of([0.0, 3.0, 0.0, 5.0, 0.0], [0.0, -0.2, 0.0, 0.7, 0.0])
    evidence = prefix_evidence(
        curves, 0, ["c", "A", "B", "A", "B", "C"], np.arange(6.0), PrefixConfig(context=1, threshold=0.5)
    )
    (b,) = (item for item in evidence if item.event == "B")
    (a,) = (item for item in evidence if item.event == "A")
    assert (b.verdict, b.positions, b.indicator, b.cmi_nats) == ("cause", (2, 4), 0.7, 5.0)
    assert (a.verdict, a.positions) == ("no effect", (1, 3))
    assert (b.indicator_sd, b.indicator_se, b.se) == pytest.approx((0.7 / 3, 0.7 / 6, 0.7 / 6))  # 4 contexts
    assert {item.event for item in evidence} == {"A", "B", "C"}  # events before c are never tested


def test_a_negative_indicator_is_an_inhibitor() -> None:
    curves = curves_of([0.0, 2.0, 0.0, 0.0], [0.0, -0.4, 0.0, 0.0])
    evidence = prefix_evidence(curves, 0, list("cABCD"), np.arange(5.0), PrefixConfig(context=1, threshold=1.0))
    assert [item.event for item in evidence if item.verdict == "inhibitor"] == ["B"]


def test_a_flat_curve_lists_nothing() -> None:
    evidence = prefix_evidence(curves_of([0.0] * 5), 0, list("cABCDE"), np.arange(6.0), PrefixConfig(context=1))
    assert not any(item.accepted for item in evidence)


def test_theta_is_mean_plus_k_sd() -> None:
    values = np.random.default_rng(0).random((7, 2))
    for j in range(2):
        column = values[:, j].tolist()
        mu = sum(column) / 7
        sigma = math.sqrt(sum((v - mu) ** 2 for v in column) / 6)
        assert threshold(values, 2.75)[j] == pytest.approx(mu + 2.75 * sigma)
    assert np.isinf(threshold(values[:1], 2.75)).all()  # one position has no spread: nothing can be listed


def test_max_lag_leaves_old_events_untested() -> None:
    curves = curves_of([5.0, 0.0, 0.0, 1.0])
    config = PrefixConfig(context=1, threshold=0.1, max_lag=10.0)
    times = np.array([0.0, 5.0, 20.0, 21.0, 30.0])
    evidence = prefix_evidence(curves, 0, list("cABCD"), times, config)
    assert [item.event for item in evidence] == ["B", "C", "D"]


def test_pasts_resample_the_first_c_events_and_nothing_else(workshop: Any) -> None:
    process = workshop.process("and")
    model = workshop.exact(process)
    ids = np.array([0, 1, 2, 3, 4, 5])
    sequence = workshop.contexts(ids)
    config = PrefixConfig(context=4, contexts=200)
    pasts = sample_pasts(model, sequence, config, seed=0, sequence_id="s")
    assert (pasts[:, 4:] == ids[4:] + SPECIAL_IDS).all()
    law = truncate_law(model.event_probs(sequence)[:4], top_k=35, top_p=0.8, temperature=1.0)
    assert all(float(law[i, pasts[n, i]]) > 0 for n in range(200) for i in range(4))
    permuted = sample_pasts(model, sequence, replace(config, sampler="permutation"), seed=0, sequence_id="s")
    assert (np.sort(permuted[:, :4], axis=1) == np.sort(ids[:4]) + SPECIAL_IDS).all()
    assert len({tuple(row) for row in permuted[:, :4].tolist()}) == 24


@pytest.mark.bits
def test_pieces_of_contexts_change_nothing(workshop: Any) -> None:
    """The sum over contexts is taken piece by piece: many labels force small pieces."""
    labels = tuple(f"y{j}" for j in range(30_000))
    weight = np.linspace(0, 1, 30_000)
    model = workshop.response(9, lambda present: 0.1 + 0.8 * present[:, :1] * weight, labels)
    sequence = workshop.contexts([4, 0, 5, 6, 0])
    pasts = sample_pasts(model, sequence, PrefixConfig(context=1, contexts=40), seed=0, sequence_id="s")
    model.asked.clear()
    many = prefix_curves(model, sequence, pasts, np.arange(30_000), 1)
    assert len(model.asked) > 1
    few = prefix_curves(model, sequence, pasts, np.array([7, 29_999]), 1)
    assert many.cmi_nats[:, [7, 29_999]] == pytest.approx(few.cmi_nats, abs=1e-12)
    assert many.indicator[:, [7, 29_999]] == pytest.approx(few.indicator, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"context": 0}, "context"),
        ({"contexts": 0}, "contexts"),
        ({"sampler": "beam"}, "sampler"),
        ({"temperature": 0.0}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"max_lag": -1.0}, "max_lag"),
        ({"threshold": float("nan")}, "threshold"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        PrefixConfig(**settings)


def test_the_defaults_are_the_papers() -> None:
    config = PrefixConfig()
    assert (config.context, config.contexts, config.top_k, config.top_p, config.threshold) == (15, 68, 35, 0.8, 2.75)
    assert torch.get_num_threads() == 1
