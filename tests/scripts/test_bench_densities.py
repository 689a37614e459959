"""What is counted as multiplied, and which rows of an earlier call stay."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from oscar_causal.density.transformer import Network, NetworkConfig

Script = Callable[[str], ModuleType]


def test_weights_in_products_are_those_that_every_token_meets(script: Script) -> None:
    few = NetworkConfig(events=64, labels=3, width=16, heads=2, layers=2, label_layers=1, hidden=24, bag_width=8)
    many = NetworkConfig(**{**vars(few), "shortlist": 5})
    blocks = 3 * (4 * 16 * 16 + 3 * 16 * 24)
    heads = (64 + 3 + 2 + 2) * 16  # next event, labels, two times
    beside = 8 * 16 + 36 * 16  # what comes out of the bag, times going in
    for config in (few, many):
        assert script("bench_densities").flop_weights(Network(config)) == blocks + heads + beside


def test_rows_of_the_same_fleet_and_commit_stay(script: Script, tmp_path: Path) -> None:
    def written(name: str, commit: str) -> list[str]:
        args = Namespace(part="variants", fleet="f", preset="p", commit=commit, set=[name], work=None, workers=2)
        args.out = tmp_path
        script("bench_densities").write(args, {"rows": [{"variant": name}]})
        found = json.loads((tmp_path / "densities-variants-f-p.json").read_text())
        return [row["variant"] for row in found["rows"]]

    assert written("a", "1") == ["a"]
    assert written("b", "1") == ["a", "b"]
    assert written("a", "1") == ["b", "a"]
    assert written("c", "2") == ["c"]
