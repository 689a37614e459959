"""Statistics of many sequences: whole numbers that merge in any order, and equal plain sums over the rows."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oscar_causal.data.folders import write_json
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.subjects import folds
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.evidence import (
    FOLDS,
    GROUPS,
    NO_WINDOW,
    ONE,
    FleetEvidence,
    Whereabouts,
    collect,
    collect_results,
    empty_evidence,
    fixed,
    merge,
    start_windows,
    subject_groups,
)
from oscar_causal.discovery.results import EVIDENCE_SCHEMA, VERDICT_SCHEMA, ResultsWriter, read_run
from oscar_causal.errors import FolderError, UsageError

SEQUENCES = 1000


@pytest.fixture(scope="module")
def fleet() -> Dataset:
    rng = np.random.default_rng(0)
    return from_records(
        {
            "sequence_id": f"s{k}",
            "subject_id": f"car {k // 3}",
            "start": None
            if k == 7
            else datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
            + datetime.timedelta(days=int(rng.integers(0, 400))),
            "events": ["A"],
            "times": [0.0],
            "labels": ["y"],
        }
        for k in range(SEQUENCES)
    )


def rows_of(numbers: Any) -> tuple[pa.Table, pa.Table]:
    """Verdicts and evidence of the sequences with these numbers; every figure a function of the number alone."""
    verdicts: list[dict[str, Any]] = []
    evidence: list[dict[str, Any]] = []
    for k in numbers:
        rng = np.random.default_rng([5, k])
        for label in ("y", "z")[: 1 + k % 2]:
            key = {"sequence_id": f"s{k}", "label": label}
            seen, trusted = bool(k % 5 == 0), [True, None, False][k % 7 % 3]
            verdicts.append(
                {
                    **key,
                    "observed": [True, None, False][k % 3],
                    "probability": rng.random(),
                    "trusted": trusted,
                    "seen_in_training": seen,
                    "flags": [],
                }
            )
            for event in "ABC":
                tested = rng.random() < 0.6
                evidence.append(
                    {
                        **key,
                        "event": event,
                        "verdict": "cause" if rng.random() < 0.3 else "no effect",
                        "effect": float(np.clip(rng.normal(0, 0.3), -1, 1)),
                        "se": rng.random() if tested else None,
                        "p_value": rng.random() if tested else None,
                    }
                )
    return pa.Table.from_pylist(verdicts, schema=VERDICT_SCHEMA), pa.Table.from_pylist(evidence, schema=EVIDENCE_SCHEMA)


@pytest.mark.bits
def test_a_thousand_shards_in_any_order_equal_one_pass_bit_for_bit(fleet: Dataset) -> None:
    where = Whereabouts.of(fleet, 90.0)
    whole = collect(*rows_of(range(SEQUENCES)), where)
    shards = [collect(*rows_of([k]), where) for k in range(SEQUENCES)]
    rng = np.random.default_rng(1)
    shuffled = [shards[k] for k in rng.permutation(SEQUENCES)]
    assert merge(shuffled) == whole
    halves = [merge(shuffled[:333]), merge([merge(shuffled[333:700]), merge(shuffled[700:])])]
    assert merge(halves) == whole
    assert merge([whole, empty_evidence()]) == whole
    assert merge([whole, shards[0]]) != whole


def test_sums_equal_plain_sums_over_the_rows(fleet: Dataset) -> None:
    verdicts, evidence = rows_of(range(60))
    got = collect(verdicts, evidence, Whereabouts.of(fleet))
    came = {(row["sequence_id"], row["label"]) for row in verdicts.to_pylist() if row["observed"] is not False}
    rows = [row for row in evidence.to_pylist() if (row["sequence_id"], row["label"]) in came]
    for label, event in (("y", "A"), ("z", "C")):
        mine = [row for row in rows if (row["label"], row["event"]) == (label, event)]
        tested = [row for row in mine if row["p_value"] is not None]
        totals = _totals(got, label, event)
        assert totals["present"] == len(mine)
        assert totals["tested"] == totals["noisy"] == len(tested)
        assert totals["effect"] / ONE == pytest.approx(sum(row["effect"] for row in tested), abs=1e-7)
        assert totals["effect_square"] / ONE == pytest.approx(sum(row["effect"] ** 2 for row in tested), abs=1e-7)
        assert totals["noise"] / ONE == pytest.approx(sum(row["se"] ** 2 for row in tested), abs=1e-7)
        assert totals["causes"] == sum(row["verdict"] == "cause" for row in mine)
    assert sum(got.labels["sequences"].to_pylist()) == len(came)
    placed = [row for row in verdicts.to_pylist() if row["observed"] is not False]
    assert sum(got.labels["untrusted"].to_pylist()) == sum(row["trusted"] is False for row in placed) > 0
    assert sum(got.labels["seen"].to_pylist()) == sum(row["seen_in_training"] for row in placed) > 0
    observed = verdicts["observed"].to_pylist()
    assert sum(got.labels["unlabelled"].to_pylist()) == observed.count(None) > 0
    assert sum(got.labels["absent"].to_pylist()) == observed.count(False) > 0


def _totals(evidence: FleetEvidence, label: str, event: str) -> dict[str, int]:
    rows = [row for row in evidence.pairs.to_pylist() if (row["label"], row["event"]) == (label, event)]
    return {
        name: sum(row[name] for row in rows) for name in rows[0] if name not in ("label", "event", "window", "group")
    }


def test_groups_keep_subjects_whole_and_are_even() -> None:
    names = pa.array([f"car {k}" for k in range(20_000)])
    groups = subject_groups(names)
    assert (subject_groups(names[::-1])[::-1] == groups).all()
    counts = np.bincount(groups, minlength=GROUPS)
    assert abs(counts / counts.mean() - 1).max() < 0.3
    assert GROUPS % FOLDS == 0
    for seed in range(3):  # the subjects of one fold of training are in all groups
        assert len({*groups[folds(names, FOLDS, seed=seed) == 0].tolist()}) == GROUPS


def test_windows_follow_the_calendar_and_unknown_starts_stay_apart() -> None:
    days = [datetime.datetime(1970, 1, 1 + k, 23, tzinfo=datetime.UTC) for k in range(4)]
    start = pa.array([*days, None], pa.timestamp("us", tz="UTC"))
    assert start_windows(start, 2.0).tolist() == [0, 0, 1, 1, NO_WINDOW]
    assert start_windows(start, None).tolist() == [0] * 5


def test_fixed_point_is_as_fine_as_promised() -> None:
    values = np.random.default_rng(0).uniform(-1, 1, 1000)
    assert np.abs(fixed(values) / ONE - values).max() <= 0.5 / ONE


def test_sequences_that_are_not_in_the_dataset_are_refused(fleet: Dataset) -> None:
    with pytest.raises(FolderError, match="not in the dataset"):
        collect(*rows_of([1002]), Whereabouts.of(fleet))


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("evidence", "effect", 1e300, "effect: expected numbers from -1 to 1, got 1e"),
        ("evidence", "effect", float("nan"), "effect: expected numbers from -1 to 1, got nan"),
        ("evidence", "se", -0.1, "se: expected numbers from 0 to inf, got -0.1"),
        ("evidence", "sequence_id", "s 999", "r: 1 rows of evidence are on pairs"),
        ("evidence", "label", None, "r: 1 rows of evidence are on pairs"),
        ("evidence", "event", None, "event: expected a name"),
        ("verdicts", "probability", 1.5, "probability: expected numbers from 0 to 1, got 1.5"),
        ("verdicts", "label", None, "label: expected a name"),
    ],
)
def test_numbers_and_names_that_cannot_be_are_refused(
    fleet: Dataset, table: str, column: str, value: Any, words: str
) -> None:
    tables = dict(zip(("verdicts", "evidence"), rows_of([0]), strict=True))
    rows = tables[table].to_pylist()
    rows[0] |= {"p_value": 0.5, column: value} if table == "evidence" else {column: value}
    tables[table] = pa.Table.from_pylist(rows, schema=tables[table].schema)
    with pytest.raises(FolderError, match=words):
        collect(tables["verdicts"], tables["evidence"], Whereabouts.of(fleet), source="r")


@pytest.mark.parametrize("days", [0.0, -3.0, 1e-9, 1e9, float("nan"), float("inf")])
def test_windows_that_no_calendar_holds_are_refused(fleet: Dataset, days: float) -> None:
    with pytest.raises(UsageError, match=r"window: expected 0\.01 to 36525 days"):
        Whereabouts.of(fleet, days)


def test_every_part_of_verdicts_has_its_evidence(tmp_path: Path) -> None:
    data = from_records([{"sequence_id": f"s{k}", "events": ["A"], "times": [0.0], "labels": ["y"]} for k in range(4)])
    writer = ResultsWriter(tmp_path / "r", {"fingerprint": "x"})
    for k in range(4):
        writer.write_shard(
            k, [Boundary(f"s{k}", "y", True, 0.5, (EventEvidence("A", (0,), "cause", 0.5, p_value=0.0),))]
        )
    writer.finish()
    (whole,) = merge(collect_results(tmp_path / "r", Whereabouts.of(data))).labels["label"].unique().to_pylist()
    assert whole == "y"
    (tmp_path / "r" / "verdicts" / "part-00002.parquet").unlink()
    with pytest.raises(FolderError, match=r"part-00002\.parquet: missing"):
        list(collect_results(tmp_path / "r", Whereabouts.of(data)))
    (tmp_path / "r" / "checksums.json").unlink()
    with pytest.raises(FolderError, match="verdicts: expected 4 rows"):
        list(collect_results(tmp_path / "r", Whereabouts.of(data)))
    run = read_run(tmp_path / "r")
    del run["rows"]
    write_json(tmp_path / "r" / "run.json", run)  # as older folders are
    with pytest.raises(FolderError, match=r"part-00002\.parquet in one alone"):
        list(collect_results(tmp_path / "r", Whereabouts.of(data)))
