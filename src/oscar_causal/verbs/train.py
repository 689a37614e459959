"""`oscar train`: both densities from a dataset; resumes after a kill."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import (
    Force,
    Json,
    print_json,
    print_lines,
    print_note,
    progress_bar,
    progress_lines,
    quiet_numbers,
)


def run(
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")],
    out: Annotated[Path, typer.Option(help="Model folder to write.")],
    preset: Annotated[str, typer.Option(help="tiny (CPU), base (about 58 M weights) or paper (about 108 M).")] = "tiny",
    steps: Annotated[int | None, typer.Option(help="Optimiser steps.")] = None,
    batch_tokens: Annotated[int | None, typer.Option(help="Events of one batch.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    label_form: Annotated[str | None, typer.Option(help="shared or cross (the paper's).")] = None,
    scheme: Annotated[str | None, typer.Option(help="joint or two-stage (the paper's).")] = None,
    min_context: Annotated[
        int | None,
        typer.Option(help="Fewest events before labels are predicted (c); fitted to the lengths by default."),
    ] = None,
    max_length: Annotated[int | None, typer.Option(help="Longest sequence; older events are cut off.")] = None,
    min_count: Annotated[int | None, typer.Option(help="Rarer events become `unknown`.")] = None,
    hidden: Annotated[
        float | None, typer.Option(help="Share of sequences met with some of their event types hidden.")
    ] = None,
    lost_labels: Annotated[float | None, typer.Option(help="Share of positive labels known to be missing.")] = None,
    balance: Annotated[
        float | None, typer.Option(help="How far rare labels are weighted up: 0 not at all, 1 as common as their lack.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides initial weights, split and order.")] = None,
    folds: Annotated[
        int | None, typer.Option(help="Train K models so that every subject has one that never saw it.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that look for what each label listens to; default: one a core.")
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(help="Most memory in GiB beside the dataset; by default a share of what is free."),
    ] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's curves.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interruption.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Train both densities: the next event and every label from each prefix."""
    from oscar_causal.data.folders import partial_of, refuse_existing
    from oscar_causal.data.sequences import read_dataset
    from oscar_causal.density.fitting import inputs_of, train
    from oscar_causal.density.partial import is_main_process, unfinished
    from oscar_causal.density.settings import preset_config

    given = {
        "steps": steps,
        "batch_tokens": batch_tokens,
        "learning_rate": learning_rate,
        "label_form": label_form,
        "scheme": scheme,
        "min_context": min_context,
        "max_length": max_length,
        "min_count": min_count,
        "hidden": hidden,
        "lost_labels": lost_labels,
        "balance": balance,
        "seed": seed,
    }
    config = preset_config(preset, **{key: value for key, value in given.items() if value is not None})
    refuse_existing(out, force=force)
    data = read_dataset(dataset)
    if resume and not unfinished(out):
        print_note(f"{partial_of(out)}: no unfinished run to go on from, starting afresh")
    workers = workers if workers is not None else os.cpu_count() or 1
    plans: list[Any] = []
    with progress_bar("training", "steps") as show, curves(tensorboard if is_main_process() else None) as draw:
        count = progress_lines("counting what labels listen to", "searches")

        def on_list(done: int, total: int) -> None:
            if is_main_process():
                count(done, total)

        def on_step(step: int, total: int, figures: dict[str, float]) -> None:
            if not is_main_process():
                return
            show(step, total)
            draw(step, figures)
            if "held_out_label_loss" in figures:
                print_note(f"step {step:,}: {quiet_numbers(figures)}")

        def on_plan(plan: Any) -> None:
            plans.append(plan)
            if is_main_process() and plan.words() not in {earlier.words() for earlier in plans[:-1]}:  # as for a fold
                print_note(plan.words())

        calls: dict[str, Any] = {"memory": memory, "on_plan": on_plan, "on_list": on_list, "on_step": on_step}
        quality = train(data, out, config, folds=folds, resume=resume, force=force, workers=workers, **calls)
    if not is_main_process():
        return
    left_out, inputs = _left_out(out, data), inputs_of(data, config)
    if json:
        needed = max(plans, key=lambda plan: plan.total).to_json() if plans else None
        told = {"model": str(out), "labels": quality["labels"], "left_out": left_out, "inputs": inputs}
        print_json({**told, "memory": needed})
    else:
        print_lines([*_summary(out, quality), *_input_words(inputs, config), *_left_out_words(left_out)])


def _input_words(inputs: dict[str, Any], config: Any) -> list[str]:
    from oscar_causal.density.fitting import input_words

    lines = [f"the model {input_words(inputs)}"]
    if not config.min_context:
        lines.append(f"c = {inputs['min_context']}, fitted to the lengths of the data (--min-context sets it)")
    if inputs["events_cut"]:
        many = f"{inputs['events_cut']:,} events of {inputs['sequences_cut']:,} sequences"
        lines.append(f"{many} lie beyond --max-length {config.max_length:,} and are not read")
    return lines


def _left_out(out: Path, data: Any) -> dict[str, list[str]]:
    """Labels and event types of the dataset that the model does not know."""
    from oscar_causal.data.folders import read_json

    place = out / "fold-0" if (out / "folds.json").exists() else out
    known = read_json(place / "vocabulary.json")
    names = {"labels": data.label_names, "events": data.event_names}
    return {kind: sorted(set(every) - set(known[kind])) for kind, every in names.items()}


def _left_out_words(left_out: dict[str, list[str]]) -> list[str]:
    from oscar_causal.discovery.survey import first_names

    why = {
        "labels": "labels occur in held-out sequences only, the model does not know them",
        "events": "event types are read as unknown (in held-out sequences only, or rarer than --min-count)",
    }
    return [f"{len(names):,} {why[kind]}: {first_names(names)}" for kind, names in left_out.items() if names]


@contextmanager
def curves(folder: Path | None) -> Iterator[Callable[[int, dict[str, float]], None]]:
    """A function that adds figures of a step to the curves in `folder`; without a folder it does nothing."""
    if folder is None:
        yield lambda step, figures: None
        return
    from oscar_causal.data.extras import load_extra

    load_extra("tensorboard", "--tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:

        def draw(step: int, figures: dict[str, float]) -> None:
            for name, value in figures.items():
                writer.add_scalar(name, value, step)

        yield draw


def _summary(out: Path, quality: dict[str, Any]) -> list[str]:
    weighted, macro = quality["labels"]["weighted"]["f1"], quality["labels"]["macro"]["f1"]
    lines = [f"{out}: held-out label F1 {weighted:.3f} weighted, {macro:.3f} macro"]
    if "per_label" in quality:
        rows = quality["per_label"]
        lines.append(f"{sum(row['trusted'] for row in rows.values())} of {len(rows)} labels can be judged")
    return lines
