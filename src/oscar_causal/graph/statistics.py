"""The `statistics/` of a population folder, read back: the whole numbers that `merge` takes, or why they are not.

Of folders of format 1 the cells are left out: they were counted in another alphabet, and close looks can be made again.
Older ones counted no patterns, did not tell unlabelled sequences apart, nor count absent labels: none are known of.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.discovery.cells import ACTED, CELLS, OUTSIDE
from oscar_causal.discovery.evidence import GROUPS, SCHEMAS, FleetEvidence, empty_evidence
from oscar_causal.errors import FolderError
from oscar_causal.graph.population_folder import read_info, read_part

_NEWER = {"labels": ("unlabelled", "absent")}
"""Table -> sums that older folders lack."""
_BELOW = {"group": GROUPS, "cell": CELLS * (1 + len(ACTED) * len(OUTSIDE))}
"""Keys that are numbers of something there are so many of."""
_SIGNED = ("effect", "window")


def read_statistics(folder: Path | str) -> FleetEvidence:
    """The sums a population was made from, to be merged with others."""
    patterns = (Path(folder) / "statistics" / "patterns.parquet").exists()
    there = {"patterns": patterns, "cells": read_info(folder)["format_version"] > 1}
    return replace(empty_evidence(), **{name: _table(folder, name) for name in SCHEMAS if there.get(name, True)})


def _table(folder: Path | str, name: str) -> pa.Table:
    schema, path = getattr(empty_evidence(), name).schema, Path(folder) / "statistics" / f"{name}.parquet"
    table = read_part(folder, f"statistics/{name}.parquet")
    for column in (column for column in _NEWER.get(name, ()) if column not in table.column_names):
        table = table.append_column(column, pa.array([0] * len(table), pa.int64()))
    try:
        table = table.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError, ValueError) as error:
        found = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise FolderError(f"{path}: expected the columns {', '.join(schema.names)}, found {found!r}") from error
    for column in schema.names:
        _check(table[column], column, path)
    return table


def _check(values: pa.ChunkedArray, column: str, path: Path) -> None:
    if values.null_count:
        raise FolderError(f"{path}: column {column!r}: expected a value in every row, found a null")
    if column == "pattern" and not pc.all(pc.match_substring_regex(values, "^[0-9a-f]+$"), min_count=0).as_py():
        raise FolderError(f"{path}: column 'pattern': expected hexadecimal numbers")
    if values.type == pa.string() or column in _SIGNED:
        return
    numbers = values.to_numpy()
    wrong = numbers[(numbers < 0) | (numbers >= _BELOW.get(column, np.inf))]
    if len(wrong):
        most = f"0 to {_BELOW[column] - 1}" if column in _BELOW else "0 or more"
        raise FolderError(f"{path}: column {column!r}: expected {most}, got {wrong[0]}")
