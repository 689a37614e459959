"""Tables of the report: trust over folds, and where numbers come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oscar_causal.discovery.boundary import Boundary
from oscar_causal.errors import FolderError
from oscar_causal.report.sources import Sources
from oscar_causal.report.tables import label_rows, provenance


def quality(f1: float, *, trusted: bool, reason: str | None = None) -> dict[str, Any]:
    row = {"trusted": trusted, "reason": reason, "positives": 10, "f1": f1, "average_precision": None, "ece": 0.1}
    return {"per_label": {"worn": row}, "evaluated_on": "some"}


@pytest.mark.parametrize(("votes", "trusted"), [((True, True, False), True), ((True, False), False), ((False,), False)])
def test_the_majority_of_folds_decides(votes: tuple[bool, ...], trusted: bool) -> None:
    folds = tuple(quality(0.5 + k / 10, trusted=vote, reason=None if vote else "rare") for k, vote in enumerate(votes))
    [row] = label_rows([Boundary("car", "worn", True, None, ())], Sources(Path("r"), {}, qualities=folds))
    assert row["trusted"] is trusted
    assert row["reason"] == (None if trusted else "rare")
    assert row["positives"] == 10 * len(votes)
    assert row["f1"] == pytest.approx(sum(0.5 + k / 10 for k in range(len(votes))) / len(votes))
    assert row["average_precision"] is None
    assert row["mean_probability"] is None


def test_a_label_the_model_does_not_know_is_neither_trusted_nor_not() -> None:
    sources = Sources(Path("r"), {}, qualities=(quality(0.9, trusted=True),))
    [row] = label_rows([Boundary("car", "other", True, 0.5, ())], sources)
    assert (row["trusted"], row["f1"], row["explained"], row["with_causes"]) == (None, None, 1, 0)


def test_an_odd_quality_file_is_one_line() -> None:
    """A model of another program may say less, and may say it wrongly."""
    items = [Boundary("car", "worn", True, 0.5, ())]
    [row] = label_rows(items, Sources(Path("r"), {}, qualities=({"per_label": {"worn": {"trusted": True}}},)))
    assert (row["trusted"], row["positives"], row["f1"]) == (True, None, None)
    for odd, expected in (
        ({"per_label": []}, "per_label: expected a JSON object"),
        ({"per_label": {"worn": 0.9}}, "worn: expected a JSON object, found 0.9"),
        ({"per_label": {"worn": {"trusted": "yes"}}}, "trusted: expected true or false, found 'yes'"),
        ({"per_label": {"worn": {"f1": "high"}}}, "f1: expected a number, found 'high'"),
    ):
        with pytest.raises(FolderError, match=r"quality\.json") as told:
            label_rows(items, Sources(Path("r"), {}, qualities=(odd,)))
        assert expected in str(told.value)


def test_provenance_leaves_out_what_is_not_known(tmp_path: Path) -> None:
    run = {
        "estimator": "iamb",
        "config": {"alpha": 0.01, "nested": {}},
        "dataset": {"path": "/a/fleet", "digest": "d" * 64},
    }
    told = dict(map(tuple, provenance(Sources(tmp_path / "found", run), shown=1, explained=2)))  # type: ignore[arg-type]
    assert told == {
        "Method": "iamb",
        "Settings": "alpha 0.01",
        "Sequences": "1 shown of 2 explained",
        "Results": "found",
        "Dataset": f"fleet, digest {'d' * 16}",
    }


@pytest.mark.parametrize(
    ("quality", "words"), [({}, "F1 alone (an earlier version)"), ({"judged_by": "skill"}, "skill")]
)
def test_provenance_says_what_labels_were_judged_by(quality: dict[str, str], words: str, tmp_path: Path) -> None:
    sources = Sources(tmp_path / "found", {}, qualities=({"evaluated_on": "9 sequences", **quality},))
    assert ["Labels judged by", words] in provenance(sources, shown=1, explained=2)
