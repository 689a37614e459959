"""Started by the tests of estimates: trains and checks in forked processes, prints bytes estimated and grown by."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscar_causal.data.sequences import from_records
from oscar_causal.density.checking import check
from oscar_causal.density.fitting import train
from oscar_causal.density.settings import preset_config


def grown(place: Path, work: Callable[[Callable[[Any], None]], Any]) -> list[int]:
    """The estimate, and by how much a process of its own grew from the plan to its peak."""
    child = os.fork()
    if not child:
        before: list[int] = []

        def on_plan(plan: Any) -> None:
            before[:] = [plan.total, int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()]

        work(on_plan)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        place.write_text(json.dumps([before[0], peak - before[1]]))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"the process ended with {status}")
    return list(json.loads(place.read_text()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    place = Path(sys.argv[1])
    rng = np.random.default_rng(0)
    data = from_records(
        {
            "sequence_id": f"s{k}",
            "events": [f"e{v}" for v in rng.integers(0, 100, 20)],
            "times": (np.arange(20) * 60.0).tolist(),
            "labels": [f"y{v}" for v in {*rng.integers(0, 400, 10).tolist()}],
        }
        for k in range(300)
    )
    config = preset_config("tiny", steps=2, min_context=5, checkpoint_seconds=0.0)
    found = {
        "train": grown(place / "train", lambda on_plan: train(data, place / "model", config, on_plan=on_plan)),
        "check": grown(place / "check", lambda on_plan: check(place / "model", data, on_plan=on_plan)),
    }
    print(json.dumps(found))
