"""The paper's mathematics on processes where everything is known: exact enumeration, no model, no training.

    python scripts/bench_mathematics.py                    # all parts, minutes on one core
    python scripts/bench_mathematics.py --part variance

Parts: gain (Eq. 1 against Eq. 2), bound (is the gain at most H(Y)?), estimator (is Eq. 4 the CMI?), variance (does it
fall as 1/N?), assumptions (Theorem 1 with one assumption broken), speed (ratios of times with random models). Figures
go to docs/figures, numbers to docs/results/mathematics.json; a part measured again replaces the old one.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from broken_assumptions import measure_assumptions, plot_assumptions
from enumeration import enumerate_all
from program import commit
from speed_ratios import measure_speed, plot_speed

from oscar_causal.data.folders import read_json, write_json
from oscar_causal.data.solvable import EXAMPLES, SolvableProcess, example
from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.density.exact import ExactDensity
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery.prefix import PrefixConfig, prefix_curves, sample_pasts
from oscar_causal.score.bench.plots import save_plot

PROCESSES = ("and", "or", "not", "xor", "announcer", "mediator", "hidden", "redundant", "rare")
POSITION = 3
"""Where Eq. 4 is looked at: the first position after c = 3 drawn events."""
PROPOSALS: dict[str, dict[str, Any]] = {
    "no truncation": {},
    "top-k=20": {"top_k": 20},
    "top-k=35": {"top_k": 35},
    "top-k=35, p=0.8": {"top_k": 35, "top_p": 0.8},
}
CONTEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
REPEATS = 300


def measure_gain() -> dict[str, Any]:
    """Eq. 1 and Eq. 2 over all (prefix, event): how often they differ, and their means."""
    found = {}
    for name in PROCESSES:
        whole = enumerate_all(example(name))
        gain, drop, mass = whole.gain_nats, whole.drop_nats, whole.probs[:, None]
        length = gain.shape[1]
        found[name] = {
            "share_of_negative_entropy_differences": float((mass * (drop < -1e-12)).sum() / length),
            "share_where_they_differ": float((mass * (np.abs(gain - drop) > 1e-9)).sum() / length),
            "largest_difference_nats": float(np.abs(gain - drop).max()),
            "mean_gain_nats": (mass * gain).sum(0).tolist(),
            "mean_entropy_difference_nats": (mass * drop).sum(0).tolist(),
        }
    return found


def plot_gain(found: dict[str, Any], folder: Path) -> None:
    """Every (prefix, event) of two processes: the two sides of Eq. 2 against each other."""

    def draw(axes: Any) -> None:
        for axis, name in zip(axes, ("and", "announcer"), strict=True):
            whole = enumerate_all(example(name))
            gain, drop = whole.gain_nats.ravel(), whole.drop_nats.ravel()
            axis.scatter(drop, gain, s=6, alpha=0.25)
            low, high = min(drop.min(), 0), max(drop.max(), gain.max())
            axis.plot([low, high], [low, high], color="0.4", linewidth=1, label="Eq. 2 as printed")
            axis.set_title(name)
            axis.set_xlabel("H(Y | z) - H(Y | x, z), nats")
            axis.set_ylabel("KL(P(Y | x, z) || P(Y | z)), nats")
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8)

    save_plot(folder / "gain-and-entropy.png", draw, panels=2)


def measure_bound() -> dict[str, Any]:
    """The largest gain of a single event against H(Y) and log 2, and the mean gain against H(Y)."""
    found = {}
    for name in PROCESSES:
        whole = enumerate_all(example(name))
        gain, mass = whole.gain_nats, whole.probs[:, None]
        met = np.where(mass > 0, gain, 0.0)
        found[name] = {
            "entropy_nats": whole.entropy,
            "largest_gain_nats": float(met.max()),
            "times_entropy": float(met.max() / whole.entropy),
            "share_above_entropy": float((mass * (gain > whole.entropy)).sum() / gain.shape[1]),
            "share_of_zero_gains": float((mass * (gain < 1e-12)).sum() / gain.shape[1]),
            "largest_mean_gain_nats": float((mass * gain).sum(0).max()),
        }
    return found


def plot_bound(found: dict[str, Any], folder: Path) -> None:
    """H(Y), the largest gain and the largest mean gain of every process."""

    def draw(axis: Any) -> None:
        names = list(found)
        for offset, (key, title) in enumerate(
            {
                "entropy_nats": "H(Y)",
                "largest_gain_nats": "largest gain",
                "largest_mean_gain_nats": "largest CMI",
            }.items()
        ):
            axis.bar(np.arange(len(names)) + 0.27 * offset, [found[name][key] for name in names], 0.27, label=title)
        axis.axhline(math.log(2), color="0.4", linewidth=1, linestyle="--", label="log 2")
        axis.set_xticks(np.arange(len(names)) + 0.27, names, rotation=30)
        axis.set_ylabel("nats")
        axis.legend(fontsize=8)

    save_plot(folder / "gain-bound.png", draw)


def measure_estimator() -> dict[str, Any]:
    """Where Eq. 4 converges to in each sequence, and its mean over sequences, against the CMI of the position."""
    found = {}
    for name in PROCESSES:
        process = example(name)
        whole = enumerate_all(process)
        _, first, group = np.unique(whole.sequences[:, : POSITION + 1], axis=0, return_index=True, return_inverse=True)
        mass = np.bincount(group.reshape(-1), whole.probs)  # of each beginning
        cmi = process.cmi(0, POSITION)
        limits = {"observed pasts": whole.gain_nats[first, POSITION]}
        for title, cut in PROPOSALS.items():
            limits[title] = np.array([_limit(process, whole.sequences[row], cut) for row in first])
        found[name] = {
            "cmi_nats": cmi,
            "proposals": {
                title: {
                    "mean_nats": float(mass @ values),
                    "bias": float(mass @ values / cmi - 1),
                    "sd_over_sequences": float(np.sqrt(mass @ (values - mass @ values) ** 2) / cmi),
                }
                for title, values in limits.items()
            },
        }
    return found


def _limit(process: SolvableProcess, sequence: Any, cut: dict[str, Any]) -> float:
    proposal = process.proposal(sequence, **cut)
    return float(process.eq4(0, sequence, c=POSITION, proposal=proposal)[POSITION])


def plot_estimator(found: dict[str, Any], folder: Path) -> None:
    """Relative bias of the mean over sequences, a group for each process."""
    titles = list(next(iter(found.values()))["proposals"])

    def draw(axis: Any) -> None:
        width = 0.8 / len(titles)
        for k, title in enumerate(titles):
            values = [100 * part["proposals"][title]["bias"] for part in found.values()]
            axis.bar(np.arange(len(found)) + k * width, values, width, label=title)
        axis.axhline(0, color="0.3", linewidth=0.8)
        axis.set_xticks(np.arange(len(found)) + 0.4 - width / 2, list(found), rotation=30)
        axis.set_ylabel("mean of Eq. 4 against the CMI, %")
        axis.legend(fontsize=8)

    save_plot(folder / "estimator-bias.png", draw)


def measure_variance() -> dict[str, Any]:
    """The estimator as shipped (`discovery.prefix`) on one sequence with an oracle: variance and error over N."""
    process, c = SolvableProcess(replace(EXAMPLES["and"], length=8)), 4
    event_ids = np.array([2, 3, 4, 2, 0, 5, 1, 6])  # C . . C A . B .
    model, position, label = ExactDensity(process), 4, np.array([0])
    sequence = Contexts(
        torch.as_tensor(event_ids[None] + SPECIAL_IDS), torch.arange(8, dtype=torch.float64), torch.zeros(8, 0)
    )
    limit = float(process.eq4(0, event_ids, c=c)[position])
    cmi = process.cmi(0, position)
    points = []
    for n in CONTEXTS:
        config = PrefixConfig(context=c, contexts=n, top_k=None, top_p=None)
        values = []
        for seed in range(REPEATS):
            pasts = sample_pasts(model, sequence, config, seed=seed, sequence_id=f"N={n}")
            values.append(float(prefix_curves(model, sequence, pasts, label, c).cmi_nats[position - c, 0]))
        spread = np.array(values)
        points.append(
            {
                "contexts": n,
                "mean_nats": float(spread.mean()),
                "standard_error": float(spread.std(ddof=1) / math.sqrt(REPEATS)),
                "variance": float(spread.var(ddof=1)),
                "error_to_limit": float(np.sqrt(((spread - limit) ** 2).mean())),
                "error_to_cmi": float(np.sqrt(((spread - cmi) ** 2).mean())),
            }
        )
    logs = np.log([[p["contexts"], p["variance"]] for p in points])
    slope = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    return {"limit_nats": limit, "cmi_nats": cmi, "repeats": REPEATS, "slope": slope, "points": points}


def plot_variance(found: dict[str, Any], folder: Path) -> None:
    """Variance over N on logarithmic axes; error against the own limit and against the CMI."""

    def draw(axes: Any) -> None:
        n = [point["contexts"] for point in found["points"]]
        variance = [point["variance"] for point in found["points"]]
        axes[0].loglog(n, variance, marker="o", label=f"measured, slope {found['slope']:.2f}")
        axes[0].loglog(n, [variance[0] / k for k in n], linestyle="--", color="0.4", label="1/N")
        axes[0].set_ylabel("variance of Eq. 4, nats²")
        for key, title in (("error_to_limit", "its own limit"), ("error_to_cmi", "the CMI")):
            axes[1].loglog(n, [point[key] for point in found["points"]], marker="o", label=f"against {title}")
        axes[1].set_ylabel("root mean square error, nats")
        for axis in axes:
            axis.set_xlabel("contexts N")
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8)

    save_plot(folder / "variance.png", draw, panels=2)


Part = tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any], Path], None]]
PARTS: dict[str, Part] = {
    "gain": (measure_gain, plot_gain),
    "bound": (measure_bound, plot_bound),
    "estimator": (measure_estimator, plot_estimator),
    "variance": (measure_variance, plot_variance),
    "assumptions": (measure_assumptions, plot_assumptions),
    "speed": (measure_speed, plot_speed),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; may be given again")
    parser.add_argument("--out", type=Path, default=Path("docs/results/mathematics.json"))
    parser.add_argument("--figures", type=Path, default=Path("docs/figures"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.figures.mkdir(parents=True, exist_ok=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    kept = read_json(args.out) if args.out.exists() else {}
    for name in args.part or PARTS:
        measure, plot = PARTS[name]
        kept[name] = measure()
        kept["commits"] = {**kept.get("commits", {}), name: commit()}
        plot(kept[name], args.figures)
        write_json(args.out, kept)
        print(name, "measured", flush=True)


if __name__ == "__main__":
    main()
