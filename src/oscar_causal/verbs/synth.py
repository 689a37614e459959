"""`oscar synth`: a synthetic fleet with its rules and reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.errors import UsageError
from oscar_causal.verbs.output import Force, Json, print_json, print_table, progress_bar

_KNOB = "Any other knob (see --knobs), several times if need be: --set lost_labels=0.05 --set drift=0.1"


def _show_knobs(asked: bool) -> None:
    if not asked:
        return
    from oscar_causal.data.synthetic import knob_help

    print_table(("knob", "what it does"), knob_help().items())
    raise typer.Exit


def _show_worlds(asked: bool) -> None:
    if not asked:
        return
    from oscar_causal.data.synthetic.worlds import KINDS, SQL

    about = {name: draft.__doc__ for name, draft in KINDS.items()}
    about[SQL] = "Facts about the final database after SQLite has run the statements."
    print_table(("world", "labels"), list(about.items()))
    raise typer.Exit


def run(
    out: Annotated[Path, typer.Option("--out", help="Folder to write; an existing one is an error.")],
    preset: Annotated[str, typer.Option("--preset", help="demo, small, hard, temporal or paper.")] = "demo",
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same fleet, byte for byte.")] = 0,
    sequences: Annotated[int | None, typer.Option("--sequences", help="Number of sequences.")] = None,
    event_types: Annotated[int | None, typer.Option("--event-types", help="Number of different events.")] = None,
    labels: Annotated[int | None, typer.Option("--labels", help="Number of different labels.")] = None,
    length: Annotated[
        float | None, typer.Option("--length", help="Mean events per sequence; the spread follows.")
    ] = None,
    world: Annotated[
        str | None, typer.Option("--world", help="Instead of a fleet: a world of this kind (see --worlds).")
    ] = None,
    test: Annotated[
        int | None, typer.Option("--test", help="With --world: sequences of the test part, with reasons (3,000).")
    ] = None,
    null: Annotated[bool, typer.Option("--null", help="The same events, labels that depend on nothing.")] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=_KNOB)] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes; the result does not depend on it.")
    ] = None,
    _knobs: Annotated[
        bool, typer.Option("--knobs", callback=_show_knobs, is_eager=True, help="List all knobs and stop.")
    ] = False,
    _worlds: Annotated[
        bool, typer.Option("--worlds", callback=_show_worlds, is_eager=True, help="List the kinds of worlds and stop.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make synthetic sequences whose causes are known: a fleet with rules, or a world whose labels follow formulas."""
    from oscar_causal.data.synthetic import parse_settings, write_fleet
    from oscar_causal.data.synthetic import preset as make_preset

    if world is not None:
        if event_types or labels or length or null or settings or workers:
            raise UsageError(
                "--world: expected only --seed, --sequences, --test beside it; its seed draws all the rest"
            )
        _world(world, seed, out, train=sequences, test=test, force=force, as_json=as_json)
        return
    if test is not None:
        raise UsageError("--test: expected --world beside it")
    knobs = parse_settings(settings or [])
    options = {"sequences": sequences, "event_types": event_types, "labels": labels, "null": null or None}
    for key, value in options.items():
        if value is not None:
            _once(knobs, key)
            knobs[key] = value
    if length is not None:
        _once(knobs, "mean_length")
        named = make_preset(preset)
        knobs = {"sd_length": named.sd_length * length / named.mean_length, **knobs, "mean_length": length}
    config = make_preset(preset, **knobs)
    with progress_bar("synth", "sequences") as on_progress:
        info = write_fleet(config, seed, out, workers=workers, force=force, on_progress=on_progress)
    if as_json:
        print_json({"out": str(out), **info})
    else:
        print_table(("what", "value"), _summary(info), title=str(out))


def _world(kind: str, seed: int, out: Path, *, train: int | None, test: int | None, force: bool, as_json: bool) -> None:
    from oscar_causal.data.synthetic.worlds.write import TEST, TRAIN, write_world

    figures = write_world(kind, seed, out, train=train or TRAIN, test=test or TEST, force=force)
    if as_json:
        print_json({"out": str(out), "world": kind, "seed": seed, **figures})
    else:
        print_table(("what", "value"), figures.items(), title=str(out))


def _once(knobs: dict[str, Any], key: str) -> None:
    if key in knobs:
        raise UsageError(f"--set {key}=...: expected this knob once, got it as an option too")


def _summary(info: dict[str, Any]) -> list[tuple[str, Any]]:
    config, oracle, bayes = info["generator"]["config"], info["presence_oracle"], info["bayes"]
    return [
        ("sequences", info["sequences"]),
        ("events", info["events"]),
        ("mean length", info["events"] / info["sequences"]),
        ("event types", config["event_types"]),
        ("labels", config["labels"]),
        ("labels per sequence", info["label_counts"]["recorded"] / info["sequences"]),
        ("labels lost", info["label_counts"]["lost"]),
        ("labels without a reason", info["label_counts"]["false"]),
        ("causes per label that came", oracle["causes_per_pair"]),
        ("pairs with decoys", oracle["decoy_share"]),
        ("presence oracle F1", oracle["f1"]),
        ("best possible weighted F1", bayes["weighted_f1"]),
        ("best possible macro F1", bayes["macro_f1"]),
    ]
