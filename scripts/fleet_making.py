"""A synthetic fleet and its model for a benchmark, made or used where they lie; the clock and the file of a run."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import torch

from oscar_causal.data.folders import write_json
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.data.synthetic.config import FleetConfig
from oscar_causal.density.fitting import train
from oscar_causal.density.settings import preset_config

SMALL_FLEETS: dict[str, dict[str, Any]] = {
    "decoy": {
        "temporal_labels": 0.95,
        "decoys": 0.9,
        "redundant_causes": 0.05,
        "near_misses": 0.7,
        "sequences": 12_000,
    },
    "rough": {
        "near_misses": 0.8,
        "symptoms": 0.9,
        "precursors": 0.8,
        "redundant_causes": 0.3,
        "hidden_driver": 0.2,
        "lost_labels": 0.05,
        "false_labels": 0.01,
        "probabilistic_labels": 0.1,
        "label_tail": 1.1,
        "sequences": 12_000,
    },
}
"""The demo fleet made like `temporal` (routes, order, windows, counts, other routes standing by), and like `hard`."""


MANY = 50_000
"""Of more sequences a small share is enough to be held out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What every benchmark on a made fleet is told."""
    parser.add_argument("--fleet", default="decoy", help="decoy or rough (demo size), or a preset of `oscar synth`")
    parser.add_argument("--work", help="folder whose fleet/ and model/ are used, or made there and kept")
    parser.add_argument("--sequences", type=int)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--held-out", type=float, help="share of cars not trained on; as in bench_discovery.py")
    parser.add_argument("--set", dest="settings", default="{}", help="further training settings as JSON")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--until", type=float, default=540, help="begin nothing that can be left out after so many s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commit", help="default: what git says")
    parser.add_argument("--out", default="docs/results")


class Run:
    """The clock of a run, its log, and the one file that is written anew whenever a part is done."""

    def __init__(self, args: argparse.Namespace, name: str) -> None:
        self.args, self.begun = args, time.time()
        self.path = Path(args.out) / f"{name}.json"
        places = ("work", "out")
        self.result: dict[str, Any] = {
            "arguments": {key: value for key, value in vars(args).items() if key not in places},
            "seed": args.seed,
            "commit": args.commit or _commit(),
            "machine": machine(),
            "torch": torch.__version__,
            "complete": False,
            "seconds": {},
        }

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.time() - self.begun

    def late(self) -> bool:
        """Is it too late for parts that can be left out?"""
        return self.elapsed > float(self.args.until)

    def say(self, *words: object) -> None:
        """One line of the log."""
        print(f"[{self.elapsed:6.1f} s]", *words, flush=True)

    def done(self, part: str, *, complete: bool = False, **figures: Any) -> None:
        """Note that a part is done and write all figures so far."""
        self.result["seconds"][part] = self.elapsed
        self.result |= {**figures, "complete": complete}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, self.result)
        self.say(part, "done")


def machine() -> str:
    """What the figures were measured on."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else f"{platform.machine()} CPU"


def fleet_and_model(run: Run, folder: Path) -> tuple[Path, Path]:
    """`fleet` and `model` in the folder, made unless they are there: those of `bench_discovery.py --work` serve too."""
    return made_fleet(run, folder), made_model(run, folder)


def made_fleet(run: Run, folder: Path) -> Path:
    """`fleet` in the folder."""
    args, fleet = run.args, folder / "fleet"
    if not fleet.exists():
        write_fleet(_config(args), args.seed, fleet, workers=args.workers)
    info = json.loads((fleet / "dataset.json").read_text())
    if info["generator"]["seed"] != args.seed:
        raise SystemExit(f"{fleet}: expected a fleet of seed {args.seed}, found one of {info['generator']['seed']}")
    bayes = {name: info.get(name) for name in ("bayes", "presence_oracle")}
    run.done("fleet", fleet=bayes)
    return fleet


def held_out_share(args: argparse.Namespace, fleet: Path, model: Path) -> float:
    """The share of cars that the model was not, or will not be, trained on."""
    if model.exists():
        return float(json.loads((model / "training.json").read_text())["config"]["validation"])
    return float(args.held_out or (0.03 if len(read_dataset(fleet)) > MANY else 0.2))


def made_model(run: Run, folder: Path) -> Path:
    """`model` in the folder, trained on the fleet beside it."""
    args, fleet, model = run.args, folder / "fleet", folder / "model"
    if not model.exists():
        data = read_dataset(fleet)
        share = held_out_share(args, fleet, model)
        changes = {"seed": args.seed, "validation": share, **json.loads(args.settings)}
        changes |= {"steps": args.steps} if args.steps else {}

        def on_step(step: int, total: int, figures: dict[str, float]) -> None:
            if "held_out_label_loss" in figures:
                run.say(f"step {step} of {total}: held-out label loss {figures['held_out_label_loss']:.4f}")

        def on_list(done: int, count: int) -> None:
            if done in (1, count):
                run.say(f"lists of labels: {done} of {count}")

        config = preset_config(args.preset, **changes)
        train(data, model, config, workers=args.workers, on_list=on_list, on_step=on_step)
    labels = json.loads((model / "quality.json").read_text())["labels"]
    training = json.loads((model / "training.json").read_text())
    run.done("model", labels=labels, training={key: training[key] for key in ("steps", "tokens", "seconds")})
    run.say("label F1", {key: round(labels[key]["f1"], 3) for key in ("weighted", "macro", "micro")})
    return model


def _config(args: argparse.Namespace) -> FleetConfig:
    knobs = SMALL_FLEETS.get(args.fleet, {}) | ({"sequences": args.sequences} if args.sequences else {})
    return preset("demo" if args.fleet in SMALL_FLEETS else args.fleet, **knobs)


def _commit() -> str:
    try:
        return subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
