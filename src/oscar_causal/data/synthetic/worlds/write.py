"""A world as two dataset folders, `train` and `test`; the test part has its reasons and the true probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oscar_causal.data.folders import new_folder
from oscar_causal.data.schema import WHY_SCHEMA
from oscar_causal.data.synthetic.worlds.kinds import KINDS
from oscar_causal.data.synthetic.worlds.occurrences import Float
from oscar_causal.data.synthetic.worlds.reasons import DELTA
from oscar_causal.data.synthetic.worlds.sql import SQL, SqlWorld, draw_sql, explain_sql, make_sql_world
from oscar_causal.data.synthetic.worlds.truth import Explained, audit, explain
from oscar_causal.data.synthetic.worlds.world import Drawn, World, draw, make_world
from oscar_causal.data.writer import dataset_writer
from oscar_causal.errors import UsageError

TRAIN, TEST = 20_000, 3_000
WORLDS = (*KINDS, SQL)
"""Every kind of world that can be written."""
WORLD_VERSION = 1
"""Raised when the same kind and seed give other sequences than before."""


def write_world(
    kind: str, seed: int, out: Path | str, *, train: int = TRAIN, test: int = TEST, force: bool = False
) -> dict[str, Any]:
    """Write `out/train` and `out/test` and return what the truth says of the test part (see `audit`)."""
    world = world_of(kind, seed)
    with new_folder(out, force=force) as folder:
        _write(folder / "train", world, drawn_from(world, train, "train"), "train")
        drawn = drawn_from(world, test, "test")
        explained = explained_by(world, drawn)
        figures = audit(explained)
        _write(folder / "test", world, drawn, "test", explained, figures)
    return figures


def world_of(kind: str, seed: int) -> World | SqlWorld:
    """The world of any kind, by formula or by program."""
    if kind not in WORLDS:
        raise UsageError(f"world: expected one of {', '.join(WORLDS)}, got {kind!r}")
    return make_sql_world(seed) if kind == SQL else make_world(kind, seed)


def drawn_from(world: World | SqlWorld, count: int, part: str) -> Drawn:
    """Sequences of any world."""
    return draw_sql(world, count, part) if isinstance(world, SqlWorld) else draw(world, count, part)


def explained_by(world: World | SqlWorld, drawn: Drawn) -> list[Explained]:
    """Reasons of any world."""
    return explain_sql(world, drawn) if isinstance(world, SqlWorld) else explain(world, drawn)


def _write(
    folder: Path,
    world: World | SqlWorld,
    drawn: Drawn,
    part: str,
    explained: list[Explained] | None = None,
    figures: dict[str, float] | None = None,
) -> None:
    ids = [f"{part}-{i:06d}" for i in range(len(drawn.recorded))]
    generator = {"name": "world", "kind": world.kind, "seed": world.seed, "version": WORLD_VERSION, "part": part}
    with dataset_writer(folder) as writer:
        writer.write(sequences_table(world, drawn, ids), where=f"world {world.kind}")
        if explained:
            writer.write_why(why_table(world, explained, ids))
        writer.describe(generator=generator, **({"truth": {"delta": DELTA, **figures}} if figures else {}))
        probs = probabilities_table(world, world.probs(drawn.recorded), ids)
        pq.write_table(probs, writer.folder / "probabilities.parquet")


def sequences_table(world: World | SqlWorld, drawn: Drawn, ids: list[str]) -> pa.Table:
    """The sequences in the columns of the dataset format."""
    recorded = drawn.recorded
    offsets = pa.array(recorded.offsets, pa.int32())
    columns: dict[str, Any] = {
        "sequence_id": pa.array(ids),
        "events": _lists(offsets, pa.array(world.event_names).take(pa.array(recorded.events))),
        "times": _lists(offsets, pa.array(recorded.times_s)),
        "labels": pa.array([[world.label_names[y] for y in np.flatnonzero(row)] for row in drawn.labels]),
    }
    if world.has_values:
        columns["value"] = _lists(offsets, pa.array(recorded.values, pa.float32(), from_pandas=True))
    if world.has_static:
        known = [[("site", f"site {int(site)}"), ("age", str(int(age)))] for site, age in recorded.static]
        columns["static"] = pa.array(known, pa.map_(pa.string(), pa.string()))
    if not np.isnan(drawn.delays_s).all():
        end = recorded.times_s[recorded.offsets[1:] - 1]
        columns["label_times"] = pa.array(
            [(end[i] + drawn.delays_s[i])[row].tolist() for i, row in enumerate(drawn.labels)], pa.list_(pa.float64())
        )
    return pa.table(columns)


def why_table(world: World | SqlWorld, explained: list[Explained], ids: list[str]) -> pa.Table:
    """Causes, blockers and neutral types in the columns of `why/`."""
    rows = [
        (
            ids[pair.row],
            world.label_names[pair.label],
            world.event_names[pair.present[reason.type]],
            list(positions),
            reason.role,
            reason.necessary,
        )
        for pair in explained
        for reason, positions in zip(pair.reasons, pair.positions, strict=True)
    ]
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=WHY_SCHEMA.names)


def probabilities_table(world: World | SqlWorld, probs: Float, ids: list[str]) -> pa.Table:
    """P(label | recorded sequence): a row for each sequence, a column for each label."""
    return pa.table({"sequence_id": ids, **{name: probs[:, y] for y, name in enumerate(world.label_names)}})


def _lists(offsets: pa.Array, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(offsets, values)
