"""How good and how fast are the two densities? Writes one JSON file per part and prints a short table.

    python scripts/bench_densities.py exact                                # KL against an enumerated process, CPU
    python scripts/bench_densities.py variants --fleet hard --sequences 300000 --preset base --steps 1500
    python scripts/bench_densities.py speed --fleet paper --preset paper   # share of the bf16 matmul ceiling, CUDA

`variants` trains on one fleet: shared and cross, joint and two-stage, and further settings given as --set NAME='{...}'.
Rows of an earlier call with the same fleet, sizes and commit stay beside the new ones. With --work the fleet and the
models stay. Figures are from held-out subjects; Bayes is the generator's own.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oscar_causal.data.sequences import Dataset, from_records, read_dataset
from oscar_causal.data.solvable import EXAMPLES, SolvableProcess, bernoulli_kl
from oscar_causal.data.synthetic import preset, write_fleet
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.exact import ExactDensity
from oscar_causal.density.fitting import train
from oscar_causal.density.interface import Contexts
from oscar_causal.density.settings import SIZES, preset_config
from oscar_causal.density.training import TOLD_EVERY
from oscar_causal.score.bench.stopwatch import ceiling_tflops

VARIANTS: dict[str, dict[str, Any]] = {
    "shared, joint": {},
    "cross, joint": {"label_form": "cross"},
    "shared, two-stage": {"scheme": "two-stage"},
    "cross, two-stage (the paper's)": {"label_form": "cross", "scheme": "two-stage"},
}


def given(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Settings by name, from --set NAME=JSON."""
    return {name: json.loads(text) for name, text in (item.split("=", 1) for item in args.set)}


# --- against the exact process ---


def draw(process: SolvableProcess, count: int, seed: int) -> Dataset:
    """Sequences of the process with their labels."""
    drawn = process.sample(count, np.random.default_rng(seed))
    return from_records(
        {
            "sequence_id": f"{seed} {k}",
            "events": [process.event_names[e] for e in drawn.event_ids[k]],
            "times": drawn.times[k].tolist(),
            "labels": [name for name, on in zip(process.label_names, drawn.labels[k], strict=True) if on],
        }
        for k in range(count)
    )


def divergences(model: Any, process: SolvableProcess, data: Dataset) -> dict[str, float]:
    """Mean KL(exact || model) in nats: of the next event over positions, of the labels over prefixes and at the end."""
    exact = ExactDensity(process)
    ids = {name: k for k, name in enumerate(model.vocabulary.events)}
    place = [ids[name] + 3 if name in ids else 1 for name in process.event_names]
    events, prefixes, ends = [], [], []
    labels, offsets = torch.arange(len(process.label_names)), data.events.offsets
    for k in range(len(data)):
        names = data.events_of(k)
        rest = (torch.as_tensor(data.times[offsets[k] : offsets[k + 1]]), torch.zeros(len(names), 0))
        own = Contexts(torch.tensor([[place[process.event_names.index(n)] for n in names]]), *rest)
        true = Contexts(torch.tensor([[process.event_names.index(n) + 3 for n in names]]), *rest)
        p, q = exact.event_probs(true)[:, 3:].double(), model.event_probs(own)[:, place].double()
        terms = torch.where(p > 0, p * (p.clamp(min=1e-12) / q.clamp(min=1e-12)).log(), 0.0)
        events.append(float(terms.sum(-1).mean()))
        at = torch.arange(1, len(names) + 1)
        gaps = bernoulli_kl(
            exact.label_probs(true, labels, at)[0].double().numpy(),
            model.label_probs(own, labels, at)[0].double().numpy(),
        )
        prefixes.append(float(gaps.mean()))
        ends.append(float(gaps[-1].mean()))
    return {
        "next_event": float(np.mean(events)),
        "labels": float(np.mean(prefixes)),
        "labels_at_end": float(np.mean(ends)),
    }


def bench_exact(args: argparse.Namespace) -> dict[str, Any]:
    """KL of a tiny model against the enumerated densities, for growing training data; first row: hardly trained."""
    rows, most = [], args.sequences or 32_000
    for name in ("and", "or", "order"):
        process = SolvableProcess(replace(EXAMPLES[name], length=10))
        fresh = draw(process, 100, 999)
        for count, steps in ((most // 64, 1), (most // 64, 0), (most // 8, 0), (most, 0)):
            with tempfile.TemporaryDirectory() as folder:
                config = preset_config("tiny", steps=steps or args.steps or 600, seed=args.seed, min_context=1)
                train(draw(process, count, args.seed), f"{folder}/model", config)
                found = divergences(load_model(f"{folder}/model"), process, fresh)
            rows.append({"process": name, "sequences": count, "steps": config.steps, **found})
            print(rows[-1], flush=True)
    return {"rows": rows}


# --- variants on a fleet ---


def bench_variants(args: argparse.Namespace) -> dict[str, Any]:
    """Label F1 of each variant beside the generator's Bayes-optimal F1."""
    variants = given(args) or VARIANTS
    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {"rows": rows}
    with tempfile.TemporaryDirectory() if args.work is None else nullcontext(args.work) as folder:
        sizes = {"sequences": args.sequences} if args.sequences else {}
        info = write_fleet(preset(args.fleet, **sizes), args.seed, f"{folder}/fleet", workers=args.workers)
        data = read_dataset(f"{folder}/fleet")
        found |= {"bayes": info["bayes"], "fleet": args.fleet, "sequences": len(data)}
        for name, changes in variants.items():
            begun, log = time.time(), []
            network = {
                key: changes[key]
                for key in changes
                if key in ("label_hidden", "bag_width", "label_layers", "shortlist")
            }
            settings = {key: value for key, value in changes.items() if key not in network}
            kept = dict(SIZES[args.preset])
            SIZES[args.preset].update(network)
            config = preset_config(
                args.preset,
                **({"steps": args.steps} if args.steps else {}),
                seed=args.seed,
                validation=0.03,
                **settings,
            )

            def on_step(step: int, total: int, figures: dict[str, float], log: list[Any] = log) -> None:
                if "held_out_label_loss" in figures:
                    log.append([step, round(figures["held_out_label_loss"], 4)])

            quality = train(data, f"{folder}/{len(rows)}", config, workers=args.workers, on_step=on_step)
            SIZES[args.preset].update(kept)
            told = json.loads((Path(folder) / str(len(rows)) / "training.json").read_text())
            row = {"variant": name, "settings": changes, **judged(quality, info), "held_out_loss": log}
            rows.append({**row, "seconds": time.time() - begun, "tokens": told["tokens"]})
            print(json.dumps(rows[-1]), flush=True)
            write(args, found)  # whatever comes after may be cut short
    return found


def judged(quality: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    """Label F1, and its share of the generator's own."""
    scores = {key: quality["labels"][key]["f1"] for key in ("weighted", "macro", "micro")}
    return {"f1": scores, "share_of_bayes": {key: scores[key] / info["bayes"][f"{key}_f1"] for key in scores}}


# --- training speed ---


def bench_speed(args: argparse.Namespace) -> dict[str, Any]:
    """Tokens/s and TFLOP/s of training on real tokens, vocabulary head included, beside the bf16 matmul ceiling; and
    how good the labels are by then.

    The device is asked for figures, and so waited for, once in `TOLD_EVERY` steps. `tokens_per_s` is the median over
    such stretches without a look at held-out sequences; `tokens_per_s_overall` has those looks in it.
    """
    ceiling = ceiling_tflops("cuda") if torch.cuda.is_available() else None
    with tempfile.TemporaryDirectory() as folder:
        sizes = preset(args.fleet, sequences=args.sequences or 20_000)
        info = write_fleet(sizes, args.seed, f"{folder}/fleet", workers=args.workers)
        data = read_dataset(f"{folder}/fleet")
        marks: dict[int, float] = {}
        looks: list[int] = []
        config = preset_config(
            args.preset,
            steps=args.steps or 300,
            seed=args.seed,
            evaluations=1,
            validation=0.03,
            **given(args).get("config", {}),
        )

        def on_step(step: int, _: int, figures: dict[str, float]) -> None:
            marks[step] = time.time()
            if "held_out_loss" in figures:
                looks.append(step)

        quality = train(data, f"{folder}/model", config, workers=args.workers, on_step=on_step)
        told = json.loads((Path(folder) / "model" / "training.json").read_text())
        model = load_model(f"{folder}/model")
    real = told["tokens"] / told["steps"]  # events of a step, without padding and start tokens
    settled = [step for step in marks if step > 0.3 * config.steps and step % TOLD_EVERY == 1]  # compiled by then
    training = [pair for pair in pairwise(settled) if not any(pair[0] < look <= pair[1] for look in looks)]
    if not training:
        raise SystemExit(f"expected {TOLD_EVERY} steps without a look at held-out sequences: more --sequences, --steps")
    tokens = real * TOLD_EVERY / float(np.median([marks[after] - marks[before] for before, after in training]))
    overall = real * (settled[-1] - settled[0]) / (marks[settled[-1]] - marks[settled[0]])
    weights = flop_weights(model.network)
    tflops = 6 * weights * tokens / 1e12
    row = {"preset": args.preset, "tokens_per_s": tokens, "weights_in_products": weights, "tflops": tflops}
    row |= {"tokens_per_s_overall": overall, "real_tokens_a_step": real, "tokens_a_step": config.batch_tokens}
    row |= {"ceiling_tflops": ceiling, "share": tflops / ceiling if ceiling else None}
    row |= {"steps": config.steps, **judged(quality, info), "fleet": args.fleet, "sequences": len(data)}
    print(row, flush=True)
    return {"rows": [row], "config": asdict(config)}


def flop_weights(network: torch.nn.Module) -> int:
    """Weights that every token is multiplied by: the table of events counts once, as the vocabulary head; that of the
    bag is looked up, and shortlists are read at a few tokens of a sequence alone.
    """
    left_out = ("bag.events", "shortlist.")
    every = network.named_parameters()
    return sum(part.numel() for name, part in every if part.dim() > 1 and not name.startswith(left_out))


PARTS = {"exact": bench_exact, "variants": bench_variants, "speed": bench_speed}


def write(args: argparse.Namespace, found: dict[str, Any]) -> None:
    """The file of a part; `variants` keeps the rows of earlier calls that differ in the variants alone."""
    machine = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{platform.machine()} CPU"
    told = {key: value for key, value in vars(args).items() if key not in ("out", "work", "set", "workers")}
    result = {"arguments": told, "machine": machine, "torch": torch.__version__, **found}
    name = f"densities-{args.part}" + (f"-{args.fleet}-{args.preset}" if args.part == "variants" else "")
    path = args.out / f"{name}.json"
    if args.part == "variants" and path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        names = {row["variant"] for row in found["rows"]}
        if before["arguments"] == told:
            result["rows"] = [row for row in before["rows"] if row["variant"] not in names] + found["rows"]
    args.out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1, default=str) + "\n", encoding="utf-8")


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--fleet", default="demo")
    parser.add_argument("--sequences", type=int)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="a variant of its own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--work", type=Path, help="folder for the fleet and the models of `variants`")
    args = parser.parse_args()
    write(args, PARTS[args.part](args))


if __name__ == "__main__":
    main()
