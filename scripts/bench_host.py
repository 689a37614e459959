"""What discovery costs the host: CPU milliseconds a sequence by stage, with a model whose answers are free.

    python scripts/bench_host.py --out docs/results

A GPU answers the label model's questions so fast that what numpy and Python do between them decides how long
`oscar discover` takes. Here the model is a table look-up, so all the time is the host's. The stage *law* (the
replacement law of V event types, and draws from it) is the device's work on a GPU: with `--events 300` it is nearly
free, and what is left is what a GPU waits for. CPU time is counted, so load matters little (it still takes the cache
away); use OMP_NUM_THREADS=1.

Also counts the torch operations of a sequence where many are explained together, without those of recorded launches:
on CUDA each is a kernel that the host launches, some 5 to 10 microseconds. Writes host.json.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from program import commit
from torch.utils._python_dispatch import TorchDispatchMode

from oscar_causal.data.folders import write_json
from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery.batched import explain_together
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover, explain_sequence
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.score.bench.workload import Sizes, make_workload, random_sequences

CONFIGS = {
    "intervention": DiscoveryConfig(intervention=InterventionConfig(contexts=64)),
    "prefix": DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(contexts=64)),
}
STAGES = {
    "model": ("FreeModel",),
    "law": ("prepare", "draw_from", "truncate_law"),
    "contexts": ("build_contexts", "sample_pasts", "screen_contexts"),
    "rank": ("rank", "choose_finalists", "focus_rates"),
    "tests": ("focus_stage",),
    "removal": ("remove_finalists",),
    "evidence": ("all_evidence", "prefix_evidence"),
    "curves": ("prefix_curves",),
}
"""Stage -> functions (or classes) whose time counts to it, but for what deeper ones take."""
STAGE_OF = {name: stage for stage, names in STAGES.items() for name in names}
INTERVAL = 0.001
"""CPU seconds between two looks at the stack."""


class FreeModel:
    """Both densities and slopes from tables: P(label) is a logistic function of the events that are there."""

    channels: tuple[str, ...] = ()
    max_length, min_context = 512, 15

    def __init__(self, sizes: Sizes) -> None:
        rng = np.random.default_rng(sizes.seed)
        self.vocabulary = Vocabulary(names("E", sizes.events), names("Y", sizes.labels))
        weights = rng.normal(0.0, 0.02, (sizes.labels, self.vocabulary.size))
        strong = rng.random(weights.shape) < 2 / sizes.mean_length  # two events of a sequence decide about a label
        self.weights = torch.as_tensor(np.where(strong, 4.0, weights)).float()
        law = rng.random((sizes.longest, self.vocabulary.size), np.float32)
        law[:, :SPECIAL_IDS] = 0.0
        self.law = torch.as_tensor(law / law.sum(1, keepdims=True))

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """(N, P, Y')"""
        ids = contexts.event_ids
        logits = torch.stack([self.weights[label][ids].cumsum(1)[:, positions - 1] for label in labels.tolist()], -1)
        return torch.sigmoid(logits - 4.0)

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        """(L, V)"""
        return self.law[: sequence.event_ids.shape[1]]

    def event_logp(self, contexts: Contexts) -> torch.Tensor:
        """(N, L)"""
        return self.law[torch.arange(contexts.event_ids.shape[1]), contexts.event_ids].log()

    def label_slopes(
        self, sequence: Contexts, labels: torch.Tensor, law: torch.Tensor, shares: tuple[float, ...]
    ) -> torch.Tensor:
        """(S, L, Y')"""
        return self.weights[labels][:, sequence.event_ids[0]].T.expand(len(shares), -1, -1)


def names(letter: str, count: int) -> tuple[str, ...]:
    """E0, E1, ..."""
    return tuple(f"{letter}{k}" for k in range(count))


@dataclass
class Sampler:
    """Shares out CPU time to stages: all since the last look goes to the innermost stage on the stack."""

    seconds: dict[str, float] = field(default_factory=dict)
    last: float = 0.0

    def look(self, _signal: int, frame: FrameType | None) -> None:
        """Called by the timer."""
        now = time.process_time()
        names = (name for part in frames(frame) for name in (part.f_code.co_name, _owner(part)))
        stage = next((STAGE_OF[name] for name in names if name in STAGE_OF), "rest")
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.last
        self.last = now

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Look at the stack every so often."""
        before = signal.signal(signal.SIGPROF, self.look)
        self.last = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, before)


def _owner(frame: FrameType) -> str:
    """The class whose method runs in a frame."""
    return type(frame.f_locals.get("self")).__name__


def host_milliseconds(sizes: Sizes, config: DiscoveryConfig) -> dict[str, float]:
    """CPU milliseconds a sequence, by stage and in all."""
    model = FreeModel(sizes)
    data = random_sequences(sizes, model.vocabulary.events, model.vocabulary.labels)
    list(discover(model, data, config, indices=range(2)))
    sampler = Sampler()
    begun = time.process_time()
    with sampler.at_work():
        list(discover(model, data, config))
    total = time.process_time() - begun
    stages = {stage: 1000 * sampler.seconds.get(stage, 0.0) / len(data) for stage in [*STAGES, "rest"]}
    return {**{stage: spent for stage, spent in stages.items() if spent}, "total": 1000 * total / len(data)}


class Operations(TorchDispatchMode):
    """Counts the operations of the thread it is entered on, but for views and what a recorded launch replays."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self.counts = counts

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: D105
        answer = function(*args, **(kwargs or {}))
        if not function.is_view:
            files = [Path(frame.f_code.co_filename) for frame in frames(sys._getframe())]
            ours = [file for file in files if "oscar_causal" in file.parts]
            recorded = any(frame.f_code.co_name == "_compute" for frame in frames(sys._getframe()))
            if ours and not recorded:
                self.counts[ours[0].parent.name] += 1
        return answer


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and its callers."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def device_operations(config: DiscoveryConfig, sequences: int) -> dict[str, float]:
    """Operations a sequence, by the folder of the code that asked for them (density, discovery)."""
    sizes = Sizes("tiny", 300, 12, mean_length=60.0, sd_length=20.0, longest=100, sequences=sequences)
    work, counts = make_workload(sizes, "cpu"), Counter[str]()

    def explain(models: Any, index: int) -> None:
        with Operations(counts):
            explain_sequence(models[0], work.data, work.encoded, index, config, None)

    with Operations(counts):
        explain_together(explain, [work.model.compiled(torch.float32)], range(sequences), in_flight=64)
    return {folder: count / sequences for folder, count in sorted(counts.items())}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--events", type=int, default=Sizes.events)
    parser.add_argument("--together", type=int, default=64, help="sequences whose operations are counted")
    parser.add_argument("--labels-per-sequence", type=int, default=Sizes.labels_per_sequence)
    parser.add_argument("--commit", help="default: what git says")
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    torch.set_num_threads(1)
    sizes = Sizes(events=args.events, sequences=args.sequences, labels_per_sequence=args.labels_per_sequence)
    found = {name: host_milliseconds(sizes, config) for name, config in CONFIGS.items()}
    asked = {name: device_operations(config, args.together) for name, config in CONFIGS.items()}
    for name in CONFIGS:
        print(f"{name}, CPU ms a sequence:", ", ".join(f"{stage} {spent:.2f}" for stage, spent in found[name].items()))
        print(f"{name}, operations a sequence:", ", ".join(f"{part} {n:.0f}" for part, n in asked[name].items()))
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        made = {"machine": f"{platform.machine()} CPU", "cores": os.cpu_count()}
        made["commit"] = commit(args.commit)
        write_json(args.out / "host.json", {"sizes": asdict(sizes), "milliseconds": found, "operations": asked, **made})


if __name__ == "__main__":
    main()
