"""Same answer however it is run; what is explained, flagged and refused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import build_vocabulary
from oscar_causal.density.model import OscarModel
from oscar_causal.density.transformer import Network, NetworkConfig
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.discovery.results import ResultsWriter, fingerprint
from oscar_causal.errors import UsageError

COUNT = 10
CONFIGS = {
    "intervention": DiscoveryConfig(intervention=InterventionConfig(contexts=32, redraws=200)),
    "prefix": DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(context=2, contexts=8, threshold=1.0)),
}


def hashes(found: Iterable[list[Boundary]]) -> dict[str, str]:
    """sequence id -> hash of all its boundaries, every digit of every number included."""
    return {
        boundaries[0].sequence_id: hashlib.sha256(repr(boundaries).encode()).hexdigest()
        for boundaries in found
        if boundaries
    }


@pytest.fixture(scope="module")
def exact(workshop: Any) -> tuple[Any, Dataset]:
    process = workshop.process("ties", length=8)
    return workshop.exact(process), workshop.dataset(process, 60, seed=2).take(np.arange(60))


@pytest.fixture(scope="module")
def network() -> tuple[Any, Dataset]:
    """A small network with random weights, over sequences of very different lengths, with a channel and ties."""
    rng = np.random.default_rng(0)
    records = [
        {
            "sequence_id": f"car {k}",
            "events": [f"E{e}" for e in rng.integers(0, 30, size=length)],
            "times": np.cumsum(rng.integers(0, 3, size=length)).astype(float).tolist(),
            "labels": ["x", "y"] if k % 2 else ["y"],
            "mileage": rng.random(length).astype(np.float32).tolist(),
        }
        for k, length in enumerate(rng.integers(4, 70, size=COUNT))
    ]
    data = from_records(records)
    vocabulary = build_vocabulary(data, max_events=25)
    torch.manual_seed(0)
    shape = NetworkConfig(
        vocabulary.size, len(vocabulary.labels), channels=1, width=32, heads=2, layers=2, hidden=48, shortlist=6
    )
    built = Network(shape)
    with torch.no_grad():
        for weights in built.parameters():
            weights.add_(0.15 * torch.randn_like(weights))
    return OscarModel(built.eval(), vocabulary, ("mileage",), max_length=48, min_context=2), data


@pytest.fixture(params=["exact", "network"])
def setting(request: pytest.FixtureRequest) -> tuple[Any, Dataset]:
    model, data = request.getfixturevalue(request.param)
    return model, data.take([i for i in range(len(data)) if len(data.labels[i])][:COUNT])


@pytest.mark.bits
@pytest.mark.parametrize("estimator", CONFIGS)
def test_whole_single_reversed_and_sharded_runs_agree_bit_by_bit(setting: tuple[Any, Dataset], estimator: str) -> None:
    model, data = setting
    config = CONFIGS[estimator]
    whole = hashes(discover(model, data, config))
    assert len(whole) == COUNT
    alone = {}
    for i in range(COUNT):
        alone |= hashes(discover(model, data.take([i]), config))
    assert alone == whole
    assert hashes(discover(model, data, config, indices=range(COUNT - 1, -1, -1))) == whole
    shards = [hashes(discover(model, data.take(part), config)) for part in np.array_split(np.arange(COUNT), 3)]
    assert {name: value for shard in shards for name, value in shard.items()} == whole
    torch.manual_seed(99)  # the global generator has no say
    assert hashes(discover(model, data, config)) == whole


@pytest.mark.bits
@pytest.mark.parametrize("estimator", CONFIGS)
def test_a_killed_and_resumed_run_writes_the_same_bytes(
    setting: tuple[Any, Dataset], estimator: str, tmp_path: Path
) -> None:
    model, data = setting
    config = CONFIGS[estimator]
    run = {"fingerprint": fingerprint(config.to_json())}
    parts = np.array_split(np.arange(COUNT), 4)

    def go(out: Path, *, resume: bool, kill_after: int | None = None) -> None:
        writer = ResultsWriter(out, run, resume=resume)
        for k, part in enumerate(parts):
            if k == kill_after:
                writer.lock.close()
                return
            if not writer.done(k):
                writer.write_shard(k, [item for found in discover(model, data, config, indices=part) for item in found])
        writer.finish(seconds=float(resume))

    go(tmp_path / "whole", resume=False)
    for shard in range(1, 4):
        out = tmp_path / f"killed {shard}"
        go(out, resume=False, kill_after=shard)
        assert not out.exists()
        go(out, resume=True)
        assert content(out) == content(tmp_path / "whole")


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.parquet")}


@pytest.mark.parametrize("estimator", CONFIGS)
def test_seed_and_id_decide_and_nothing_else_does(exact: tuple[Any, Dataset], estimator: str) -> None:
    model, data = exact
    config = CONFIGS[estimator]
    row = next(i for i in range(len(data)) if len(data.labels[i]))
    record = {"events": data.events_of(row), "times": list(range(8)), "labels": data.labels_of(row)}

    def go(config: DiscoveryConfig, **changes: Any) -> list[Any]:
        one = from_records([{**record, "sequence_id": "s", **changes}])
        return [replace(item, sequence_id="") for found in discover(model, one, config) for item in found]

    first = go(config)
    assert go(config) == first
    assert go(config, subject_id="somebody else") == first
    assert go(replace(config, seed=1)) != first
    assert go(config, sequence_id="t") != first


# --- which labels ---


def test_labels_observed_predicted_or_named(workshop: Any) -> None:
    answer = lambda present: np.stack([np.full(len(present), p) for p in (0.9, 0.2, 0.7)], axis=1)  # noqa: E731
    model = workshop.response(20, answer, ("x", "y", "z"))
    data = from_records(
        [
            {"sequence_id": "a", "events": ["e0", "e1"], "times": [0, 1], "labels": ["y"]},
            {"sequence_id": "b", "events": ["e0", "e2"], "times": [0, 1], "labels": []},
            {"sequence_id": "c", "events": ["e0", "e3"], "times": [0, 1], "labels": None},
            {"sequence_id": "d", "events": ["e0"], "times": [0], "labels": ["no such label in the model"]},
        ]
    )

    def go(labels: Any) -> list[list[tuple[str, bool | None]]]:
        config = replace(CONFIGS["intervention"], labels=labels)
        return [[(item.label, item.observed) for item in found] for found in discover(model, data, config)]

    assert go("observed") == [[("y", True)], [], [], []]
    assert go("predicted") == [
        [("x", False), ("z", False)],
        [("x", False), ("z", False)],
        [("x", None), ("z", None)],
        [("x", False), ("z", False)],
    ]
    assert go(("z", "y")) == [
        [("z", False), ("y", True)],
        [("z", False), ("y", False)],
        [("z", None), ("y", None)],
        [("z", False), ("y", False)],
    ]
    with pytest.raises(UsageError, match="no such"):
        go(("no such",))
    with pytest.raises(UsageError, match="labels"):
        go("all")


@pytest.mark.parametrize("estimator", CONFIGS)
def test_one_boundary_per_label_also_when_nothing_is_found(workshop: Any, estimator: str) -> None:
    model = workshop.response(20, lambda present: np.full((len(present), 2), 0.4), ("x", "y"))
    data = from_records(
        [{"sequence_id": "a", "events": [f"e{k}" for k in range(6)], "times": list(range(6)), "labels": ["x", "y"]}]
    )
    (found,) = discover(model, data, CONFIGS[estimator])
    assert [(item.label, item.probability, item.causes) for item in found] == [
        ("x", pytest.approx(0.4), ()),
        ("y", pytest.approx(0.4), ()),
    ]


# --- flags, positions, progress ---


def test_unknown_events_and_cut_sequences_are_flagged_and_positions_are_the_datasets(workshop: Any) -> None:
    answer = lambda present: np.where(present[:, [0]], 0.9, 0.1)  # noqa: E731
    model = replace(workshop.response(20, answer), max_length=5)
    events = ["e7", "e1", "who?", "e2", "e0", "who?", "e0", "e3"]
    data = from_records([{"sequence_id": "a", "events": events, "times": list(range(8)), "labels": ["fault"]}])
    ((boundary,),) = discover(model, data)
    assert set(boundary.flags) == {"1 unknown events: who?", "oldest events cut off"}
    positions = {item.event: item.positions for item in boundary.evidence}
    assert {event: positions[event] for event in ("e0", "e2", "e3")} == {"e0": (4, 6), "e2": (3,), "e3": (7,)}
    assert "e7" not in positions
    assert next(item for item in boundary.evidence if item.event == "e0").verdict == "cause"


def test_a_sequence_without_positions_after_c_is_flagged_not_dropped(exact: tuple[Any, Dataset]) -> None:
    model, data = exact
    row = next(i for i in range(len(data)) if len(data.labels[i]))
    config = DiscoveryConfig(estimator="prefix")
    ((boundary, *_),) = discover(model, data, config, indices=[row])
    assert boundary.evidence == ()
    assert boundary.flags == ("shorter than c = 15 events",)
    assert boundary.probability is not None


@pytest.mark.parametrize("estimator", CONFIGS)
def test_excluded_events_are_never_in_the_evidence(workshop: Any, estimator: str) -> None:
    answer = lambda present: np.where(present[:, [3]] & present[:, [4]], 0.9, 0.1)  # noqa: E731
    model = workshop.response(40, answer)
    data = from_records(
        [{"sequence_id": "a", "events": [f"e{k}" for k in range(9)], "times": list(range(9)), "labels": ["fault"]}]
    )
    config = replace(CONFIGS[estimator], excluded=("e4",))
    ((boundary,),) = discover(model, data, config)
    assert "e4" not in {item.event for item in boundary.evidence}


def test_excluded_events_are_never_replaced(workshop: Any) -> None:
    model = workshop.response(40, lambda present: np.where(present[:, [3]] & present[:, [4]], 0.9, 0.1))
    data = from_records(
        [{"sequence_id": "a", "events": [f"e{k}" for k in range(9)], "times": list(range(9)), "labels": ["fault"]}]
    )
    list(discover(model, data, replace(CONFIGS["intervention"], excluded=("e4",))))
    asked = np.concatenate(model.asked)
    assert (asked[:, 4] == model.vocabulary.event_ids["e4"]).all()


def test_progress_is_told(exact: tuple[Any, Dataset]) -> None:
    model, data = exact
    told: list[tuple[int, int]] = []
    list(discover(model, data, CONFIGS["prefix"], indices=[3, 1, 2], on_progress=lambda *at: told.append(at)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_settings_are_checked_and_recorded() -> None:
    with pytest.raises(UsageError, match="estimator"):
        DiscoveryConfig(estimator="oracle")
    for name, config in CONFIGS.items():
        recorded = config.to_json()
        assert recorded["estimator"] == name
        assert set(CONFIGS) & set(recorded) == {name}  # settings of the estimator not used decide nothing
        assert fingerprint(recorded) != fingerprint(replace(config, seed=5).to_json())


def test_settings_that_an_estimator_would_not_look_at_are_refused() -> None:
    with pytest.raises(UsageError, match="prefix: its settings mean nothing to the estimator intervention"):
        DiscoveryConfig(prefix=PrefixConfig(max_lag=60.0))
    with pytest.raises(UsageError, match="intervention: its settings mean nothing to the estimator prefix"):
        DiscoveryConfig(estimator="prefix", intervention=InterventionConfig(alpha=0.01))
    with pytest.raises(UsageError, match="prefix: its settings mean nothing to the estimator statistics:mean"):
        DiscoveryConfig(estimator="statistics:mean", prefix=PrefixConfig(context=3))
