"""Where a GPU's time goes: the kernels of the contexts stage, or of a training step. A minute each on an H200.

    python scripts/profile_gpu.py contexts --sequences 1024    # the stage of `oscar bench speed`, row `ours`
    python scripts/profile_gpu.py training --sequences 20000   # ten steps of `oscar train` on a `paper` fleet

Beside the kernels: how long it took without a profiler, and the machine's ceiling.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.density.fitting import train
from oscar_causal.density.precision import float32_products
from oscar_causal.density.settings import preset_config
from oscar_causal.score.bench.speed import fast_model
from oscar_causal.score.bench.stopwatch import ceiling_tflops
from oscar_causal.score.bench.workload import Sizes, intervention_stage, make_workload, one_per_launch

STEPS = (30, 40, 50)
"""Of a training: timed from the first to the second, profiled from there to the third."""


def kernels(recorded: profile) -> Counter[str]:
    """Milliseconds by name of kernel and how often it ran."""
    spent: Counter[str] = Counter()
    number: Counter[str] = Counter()
    for event in recorded.events() or []:
        if event.device_type == torch.autograd.DeviceType.CUDA:
            spent[event.name] += event.device_time / 1000
            number[event.name] += 1
    return Counter({f"{number[name]:7d} x {name}": milliseconds for name, milliseconds in spent.items()})


def told(found: Counter[str], wall_ms: float, shown: int) -> dict[str, Any]:
    """Prints the longest, returns all."""
    total = sum(found.values())
    print(f"kernels {total:.0f} ms of {wall_ms:.0f} ms")
    for name, spent in found.most_common(shown):
        print(f"{spent:9.2f} ms  {name[:130]}")
    return {"wall_ms": wall_ms, "kernels_ms": dict(found.most_common())}


def timed(work: Callable[[], Any]) -> float:
    """Milliseconds until the device has done it."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - begun)


def contexts(args: argparse.Namespace) -> dict[str, Any]:
    """The stage twice: timed alone, then its kernels."""
    work = make_workload(Sizes(preset=args.preset, sequences=args.sequences), "cuda")
    with float32_products("high"):
        model = fast_model(work.model, "cuda")
        intervention_stage(work, model, one_per_launch(work))
        every = range(len(work.data))
        wall = timed(lambda: intervention_stage(work, model, every))
        print(f"{1000 * len(work.data) / wall:.1f} sequences/s")
        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            timed(lambda: intervention_stage(work, model, every))
    return told(kernels(recorded), wall, args.shown)


def training(args: argparse.Namespace) -> dict[str, Any]:
    """Some steps timed, then the kernels of some more; figures are of one step. A look among them is in them."""
    with tempfile.TemporaryDirectory() as folder:
        write_fleet(preset("paper", sequences=args.sequences), 0, f"{folder}/fleet", workers=args.workers)
        config = preset_config(args.preset, steps=60, evaluations=1, validation=0.03)
        begin, middle, end = STEPS
        marks: dict[int, float] = {}
        recorder = profile(activities=[ProfilerActivity.CUDA])

        def on_step(step: int, *_: Any) -> None:
            if step in STEPS:
                torch.cuda.synchronize()
                marks[step] = time.perf_counter()
            if step == middle:
                recorder.__enter__()
            if step == end:
                recorder.__exit__(None, None, None)

        train(read_dataset(f"{folder}/fleet"), f"{folder}/model", config, workers=args.workers, on_step=on_step)
    found = kernels(recorder)
    each = Counter({name: spent / (end - middle) for name, spent in found.items()})
    seconds = (marks[middle] - marks[begin]) / (middle - begin)
    print(f"{config.batch_tokens / seconds:.0f} tokens/s, padding included; a step:")
    return told(each, 1000 * seconds, args.shown)


PARTS = {"contexts": contexts, "training": training}


def main() -> None:
    """Profile one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--sequences", type=int, default=1024)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--shown", type=int, default=40)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    told_of = {key: value for key, value in vars(args).items() if key != "out"}
    place = {"machine": torch.cuda.get_device_name(), "torch": torch.__version__}
    place |= {"ceiling_tflops": ceiling_tflops("cuda"), "arguments": told_of}
    found = PARTS[args.part](args)
    if args.out is not None:
        args.out.write_text(json.dumps({**place, **found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
