"""How the time of the paper's estimator grows with V, Y, N and L: random models, one thread, one run, ratios only.

Absolute times are those of a small network on this CPU; `oscar bench speed` measures a GPU. All points of a sweep are
timed in turns by processor time, several rounds, and the fastest round counts: other work only makes rounds slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.density.model import OscarModel
from oscar_causal.density.transformer import Network, NetworkConfig
from oscar_causal.discovery.prefix import PrefixConfig, prefix_curves, sample_pasts
from oscar_causal.score.bench.plots import curves, save_plot

BASE = {"V": 1000, "Y": 16, "N": 32, "L": 64}
SWEEPS: dict[str, tuple[int, ...]] = {
    "V": (250, 1000, 4000, 16000, 32000),
    "Y": (1, 16, 64, 256, 512),
    "N": (8, 16, 32, 64, 128),
    "L": (32, 64, 128, 256, 512),
}
ROUNDS = 5
CONTEXT = 15


def measure_speed() -> dict[str, Any]:
    """Seconds of each point of each sweep: the whole estimator, and its pass of Tf_x with the draws."""
    found: dict[str, Any] = {"base": BASE, "rounds": ROUNDS, "sweeps": {}}
    for letter, values in SWEEPS.items():
        jobs = [_Job({**BASE, letter: value}) for value in values]
        fastest = np.full((len(jobs), 2), np.inf)
        for _ in range(ROUNDS):
            for k, job in enumerate(jobs):
                fastest[k] = np.minimum(fastest[k], job.seconds())
        found["sweeps"][letter] = [
            {"at": value, "seconds": float(fastest[k].sum()), "drawing_seconds": float(fastest[k, 0])}
            for k, value in enumerate(values)
        ]
    return found


class _Job:
    """The estimator on one random sequence with a random network of the given sizes."""

    def __init__(self, sizes: dict[str, int]) -> None:
        vocabulary = Vocabulary(tuple(f"E{k}" for k in range(sizes["V"])), tuple(f"y{k}" for k in range(sizes["Y"])))
        torch.manual_seed(0)
        network = Network(NetworkConfig(vocabulary.size, sizes["Y"], width=64, heads=2, layers=2, hidden=128))
        self.model = OscarModel(network.eval(), vocabulary, (), max_length=sizes["L"], min_context=1)
        ids = torch.randint(SPECIAL_IDS, vocabulary.size, (1, sizes["L"]))
        self.sequence = Contexts(ids, torch.arange(sizes["L"], dtype=torch.float64), torch.zeros(sizes["L"], 0))
        self.config = PrefixConfig(context=CONTEXT, contexts=sizes["N"])
        self.labels = np.arange(sizes["Y"])

    def seconds(self) -> tuple[float, float]:
        """Of the pass of Tf_x with the draws, and of the N passes of Tf_y with Eq. 4."""
        begun = time.process_time()
        pasts = sample_pasts(self.model, self.sequence, self.config, seed=0, sequence_id="s")
        drawn = time.process_time()
        prefix_curves(self.model, self.sequence, pasts, self.labels, CONTEXT)
        return drawn - begun, time.process_time() - drawn


def growth(points: list[dict[str, float]]) -> float:
    """Slope of log time over log size between the last two points: 0 = agnostic, 1 = linear, 2 = quadratic."""
    (a, b) = points[-2:]
    return float(np.log(b["seconds"] / a["seconds"]) / np.log(b["at"] / a["at"]))


def plot_speed(found: dict[str, Any], folder: Path) -> None:
    """Time relative to the first point of each sweep."""

    def line(
        points: list[dict[str, float]], of: Callable[[dict[str, float]], float]
    ) -> list[tuple[float, float, float]]:
        return [(point["at"], of(point) / of(points[0]), 0.0) for point in points]

    def draw(axes: Any) -> None:
        for axis, (letter, points) in zip(axes, found["sweeps"].items(), strict=True):
            slope = growth(points)
            curves(axis, {f"slope at the end {slope:.2f}": line(points, lambda p: p["seconds"])}, xlabel=letter,
                   ylabel="time relative to the first", log=2)  # fmt: skip
            axis.plot(
                [p["at"] for p in points],
                [p["at"] / points[0]["at"] for p in points],
                "--",
                color="0.5",
                label="linear",
            )
            axis.set_yscale("log", base=2)
            axis.legend(fontsize=8)

    save_plot(folder / "speed-growth.png", draw, panels=len(found["sweeps"]))
