"""How full are the launches of `discover` on a GPU? Tokens launched for each real one, counted on a CPU.

    python scripts/bench_launches.py --out docs/results/launches.json    # two cores, five minutes

4,096 sequences of the paper's lengths, cut into shards as they come and by length; some shards of each are explained.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscar_causal.density import compiled, many_slopes
from oscar_causal.discovery.oneshot import discover
from oscar_causal.discovery.results import SHARD_SEQUENCES
from oscar_causal.discovery.sharding import TOGETHER, alike
from oscar_causal.score.bench.speed import INTERVENTION
from oscar_causal.score.bench.workload import Sizes, Workload, make_workload


class Counting:
    """Counts tokens by kind of launch while it is entered: all that a launch has room for, and those that are asked."""

    def __init__(self) -> None:
        self.launched: Counter[str] = Counter()
        self.real: Counter[str] = Counter()
        self._own = (compiled.Launch.run, compiled.Launch.fill, many_slopes.SlopeLaunch.slopes)

    def __enter__(self) -> Counting:
        run, fill, slopes = self._own

        def counted_run(launch: Any) -> Any:
            self.launched[launch.kind] += launch.event_ids.numel()
            return run(launch)

        def counted_fill(launch: Any, piece: compiled.Piece, mine: Any) -> None:
            self.real[launch.kind] += (piece.rows.stop - piece.rows.start) * len(mine.contexts.beside)
            fill(launch, piece, mine)

        def counted_slopes(launch: Any, rows: Any, shares: Any) -> Any:
            self.launched["slopes"] += launch.event_ids.numel() * len(shares)
            self.real["slopes"] += sum(len(row.contexts.beside) for row in rows) * len(shares)
            return slopes(launch, rows, shares)

        self._put(counted_run, counted_fill, counted_slopes)
        return self

    def __exit__(self, *_: object) -> None:
        self._put(*self._own)

    @staticmethod
    def _put(run: Any, fill: Any, slopes: Any) -> None:
        compiled.Launch.run, compiled.Launch.fill = run, fill  # type: ignore[method-assign]
        many_slopes.SlopeLaunch.slopes = slopes  # type: ignore[method-assign]


def counts(work: Workload, rows: np.ndarray[Any, Any], every: int) -> dict[str, dict[str, float]]:
    """Of every `every`-th shard, each explained by itself."""
    model = work.model.compiled(torch.float32)
    with Counting() as counting:
        for begin in range(every // 2 * SHARD_SEQUENCES, len(rows), every * SHARD_SEQUENCES):
            list(discover(model, work.data, INTERVENTION, indices=rows[begin : begin + SHARD_SEQUENCES]))
    return {
        kind: {"launched": launched, "real": counting.real[kind], "ratio": launched / counting.real[kind]}
        for kind, launched in sorted(counting.launched.items())
    }


def main() -> None:
    """Count both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=5, help="explain every so many-th shard")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    sizes = Sizes(preset="tiny", events=300, labels=20, sequences=TOGETHER * SHARD_SEQUENCES)
    work = make_workload(sizes, "cpu")
    rows = np.arange(sizes.sequences)
    orders = {"as they come": rows, "by length": alike(rows, work.data.lengths, SHARD_SEQUENCES)}
    found: dict[str, Any] = {"commit": args.commit, "every": args.every, "sizes": asdict(sizes)}
    for name, order in orders.items():
        found[name] = counts(work, order, args.every)
        print(name, {kind: round(part["ratio"], 2) for kind, part in found[name].items()}, flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
