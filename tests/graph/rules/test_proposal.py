"""Shares, JSON, calibration."""

from __future__ import annotations

import json

import pytest
from scipy.stats import norm

from oscar_causal.errors import UsageError
from oscar_causal.graph.rules.proposal import CandidateRole, Cell, Fidelity, RuleProposal, Share, calibration


@pytest.mark.parametrize(("hits", "of"), [(0, 5), (3, 7), (50, 50), (98, 100)])
def test_wilson_interval_by_its_formula(hits: int, of: int) -> None:
    z, p = norm.ppf(0.975), hits / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * ((p * (1 - p) / of + z * z / (4 * of * of)) ** 0.5)
    low, high = Share(hits, of).interval
    assert low == pytest.approx(max(middle - half, 0), abs=1e-9)
    assert high == pytest.approx(min(middle + half, 1), abs=1e-9)


def test_nothing_counted_says_nothing() -> None:
    assert Share(0, 0).to_json() == {"share": None, "low": 0.0, "high": 1.0, "hits": 0, "of": 0}


def test_a_proposal_is_json() -> None:
    share = Share(9, 10)
    proposal = RuleProposal(
        "fault",
        "proposed",
        "A",
        0.9,
        50,
        "truth table",
        fidelity=Fidelity(share, share, share, share),
        roles=(CandidateRole("A", "cause", 0.8, 3, 4),),
        cells=(Cell(("A",), 0.9, 0.1, 3, 3, True),),
    )
    told = json.loads(json.dumps(proposal.to_json()))
    assert told["fidelity"]["recall"]["share"] == 0.9
    assert told["cells"][0]["present"] == ["A"]
    assert told["roles"][0]["role"] == "cause"


def test_calibration_counts_by_stated_confidence() -> None:
    def stated(label: str, confidence: float, status: str = "proposed") -> RuleProposal:
        return RuleProposal(label, status, "A", confidence, 50, "truth table")  # type: ignore[arg-type]

    proposals = [stated("a", 0.3), stated("b", 0.97), stated("c", 1.0), stated("d", 0.96, "too few positives")]
    rows = calibration(proposals, {"a": False, "b": True, "c": False, "d": False}, edges=(0.0, 0.95))
    assert [row["right"]["of"] for row in rows] == [1, 2]
    assert [row["right"]["hits"] for row in rows] == [0, 1]
    assert rows[1]["mean_confidence"] == pytest.approx(0.985)
    with pytest.raises(UsageError, match="rising edges"):
        calibration(proposals, {}, edges=(0.5, 0.1))
