"""The benchmark of speed: its work is the work it says, its figures add up, its page tells them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.folders import read_json
from oscar_causal.density import compiled
from oscar_causal.density.settings import preset_config
from oscar_causal.density.transformer import Network, NetworkConfig
from oscar_causal.errors import UsageError
from oscar_causal.score.bench import speed
from oscar_causal.score.bench.race import LISTINGS
from oscar_causal.score.bench.workload import (
    Sizes,
    Workload,
    intervention_stage,
    make_workload,
    multiplied_weights,
    one_per_launch,
    type_effects,
)

SMALL = Sizes("tiny", events=60, labels=4, contexts=16, mean_length=30.0, sd_length=5.0, longest=47, sequences=8)


@pytest.fixture(scope="module")
def work() -> Workload:
    return make_workload(SMALL, "cpu")


def test_effects_are_differences_of_means() -> None:
    rng = np.random.default_rng(0)
    masks, probs = rng.random((20, 5)) < 0.3, rng.random((20, 2))
    masks[:, 4] = False
    found = type_effects(masks, probs)
    for k in range(4):
        expected = probs[~masks[:, k]].mean(0) - probs[masks[:, k]].mean(0)
        assert found[k] == pytest.approx(expected)


@pytest.mark.bits
def test_the_stage_is_the_same_compiled_or_not_and_in_any_order(work: Workload) -> None:
    plain = intervention_stage(work, work.model, range(8))
    fast = intervention_stage(work, work.model.compiled(torch.float32), range(8))
    again = intervention_stage(work, work.model.compiled(torch.float32), [6, 1])
    for first, second in zip(plain, fast, strict=True):
        assert np.allclose(first, second, atol=1e-5)
    assert np.array_equal(again[0], fast[6])
    assert np.array_equal(again[1], fast[1])
    assert max(float(np.abs(part).max()) for part in plain) > 1e-3


def test_the_paper_sized_model_has_the_papers_size() -> None:
    sizes = Sizes()
    config = preset_config(sizes.preset).network(events=sizes.events + 3, labels=sizes.labels, channels=0)
    with torch.device("meta"):
        network = Network(config)
    assert sum(part.numel() for part in network.parameters()) == pytest.approx(105e6, rel=0.03)


def test_ours_has_shortlists_of_random_types_and_the_listing_the_same_weights_without(work: Workload) -> None:
    ours, papers = work.model.network, work.paper_model.network
    assert ours.shortlist is not None
    assert papers.shortlist is None
    assert all(len(set(row)) == len(row) for row in ours.shortlist.types.tolist())
    assert len({tuple(row) for row in ours.shortlist.types.tolist()}) == SMALL.labels
    mine = dict(ours.named_parameters())
    for name, part in papers.named_parameters():
        assert part.data_ptr() == mine.pop(name).data_ptr()
    assert all(name.startswith("shortlist.") for name in mine)


@pytest.mark.parametrize("form", ["shared", "cross"])
def test_multiplied_weights_are_those_of_the_blocks(form: str) -> None:
    config = NetworkConfig(
        9, 2, width=32, heads=2, layers=3, label_layers=2, hidden=40, label_hidden=56, label_form=form
    )  # type: ignore[arg-type]
    network = Network(config)
    matrices = {name: part.numel() for name, part in network.named_parameters() if "blocks" in name and part.dim() > 1}
    assert multiplied_weights(config, last_block_at_one=False) == sum(matrices.values())
    everywhere = [n for name, n in matrices.items() if "label_blocks.1" not in name]
    turning = 32 * 2 * 4  # of 16 features of a head four turn, and need keys everywhere
    attentions = 2 if form == "cross" else 1
    assert multiplied_weights(config, last_block_at_one=True) == sum(everywhere) + attentions * turning


def test_every_launch_shape_is_warmed_up(work: Workload) -> None:
    shapes = {(int(length) + 16) // 16 for length in work.data.lengths}
    assert {(int(work.data.lengths[k]) + 16) // 16 for k in one_per_launch(work)} == shapes


@pytest.mark.parametrize("row", speed.ROWS)
def test_a_row_counts_its_sequences_and_operations(row: str, work: Workload) -> None:
    with pytest.warns(UserWarning, match="fused") if row == "listing_fp16" else _nothing():
        figures = speed.ROWS[row](work, "cpu")
    assert figures["sequences_per_s"] == pytest.approx(figures["sequences"] / figures["seconds"])
    assert figures["peak_gib"] is None
    if row == "ours":
        tokens = 16 * int((work.data.lengths + 1).sum())
        operations = 2 * multiplied_weights(work.model.network.config, last_block_at_one=True) * tokens
        assert figures["tflops"] * figures["seconds"] * 1e12 == pytest.approx(operations)
        assert figures["equal_in_other_company"]


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def test_the_whole_bench(settings: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(speed.SIZES, "tiny", SMALL)
    monkeypatch.setattr(compiled, "LAUNCH_TOKENS", {"end": 1024, "along": 1024, "events": 256})  # half is slow here
    monkeypatch.setattr(speed, "SWEEPS", {"labels": (2, 9), "mean_length": (25, 30)})
    chosen = settings(rows="ours,listing", sweep=True, test=3, fleet="demo")
    found = speed.BENCH(chosen)
    assert found["measured"] == ["ours", "listing"]
    assert found["ceiling_tflops"] > 0
    assert found["ours"]["share_of_ceiling"] == pytest.approx(found["ours"]["tflops"] / found["ceiling_tflops"])
    assert set(found["sweep"]) == {"labels", "mean_length"}
    assert found["agreement"]["sequences"] == 3
    assert 0 <= found["agreement"]["prefix"]["precision"] <= 1
    assert set(LISTINGS) < set(found["race"]["entrants"])
    assert set(read_json(Path(found["files"]["json"]))) >= {"ours", "listing", "ceiling_tflops", "race", "sweep"}
    page = Path(found["files"]["md"]).read_text(encoding="utf-8")
    assert "every bit the same" in page
    assert "To equal F1" in page
    assert Path(found["files"]["png"]).stat().st_size > 1000


def test_discover_in_several_processes(settings: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(speed.SIZES, "tiny", SMALL)
    assert speed.PROCESSES not in speed.rows_of(1)
    given = {"test": 40, "workers": 2, "fleet": "hard", "model": None, "dataset": None}
    found = speed.BENCH(settings(rows="discover_processes", **given))
    figures = found["discover_processes"]
    assert (figures["sequences"], figures["workers"]) == (40, 2)
    assert figures["sequences_per_s"] == pytest.approx(40 / figures["seconds"])
    assert 0 < figures["first_shard_seconds"] <= figures["seconds"]
    assert figures["tflops"] > 0
    assert "2 processes took" in Path(found["files"]["md"]).read_text(encoding="utf-8")


def test_mistakes_are_told(settings: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="preset"):
        speed.BENCH(settings(preset="huge"))
    with pytest.raises(UsageError, match="--rows"):
        speed.BENCH(settings(rows="magic"))
