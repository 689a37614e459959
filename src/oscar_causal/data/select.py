"""Part of a dataset as a dataset of its own, streamed; the truth beside it (names, rules, reasons) comes along."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.checksums import check_file
from oscar_causal.data.folders import parse_json
from oscar_causal.data.importers.names import check_notes
from oscar_causal.data.stream import read_info, stream_tables, stream_why
from oscar_causal.data.subjects import held_out
from oscar_causal.data.validate import one_array
from oscar_causal.data.writer import DatasetWriter, dataset_writer
from oscar_causal.errors import DataError, UsageError

KEPT_FILES = ("names.json", "rules.json")


@dataclass(frozen=True)
class Selection:
    """Exactly one of `last`, `ids` and `fraction`. Sequences keep the order in which they are stored.

    >>> Selection(last=50)
    Selection(last=50, ids=None, fraction=None, seed=0)
    """

    last: int | None = None
    """The last N sequences in the order of storage (an import keeps the order of its files)."""
    ids: tuple[str, ...] | None = None
    """These sequences; an id that the dataset lacks is an error, one given twice counts once."""
    fraction: float | None = None
    """All sequences of about this share of the subjects, by a hash of the subject's name and `seed`."""
    seed: int = 0

    def __post_init__(self) -> None:
        given = [name for name in ("last", "ids", "fraction") if getattr(self, name) is not None]
        if len(given) != 1:
            came = " and ".join(f"--{name}" for name in given) or "none"
            raise UsageError(f"select: expected one of --last, --ids and --fraction, got {came}")
        if self.last is not None and self.last < 1:
            raise UsageError(f"--last: expected at least 1, got {self.last}")
        if self.fraction is not None and not 0 < self.fraction <= 1:
            raise UsageError(f"--fraction: expected more than 0 and at most 1, got {self.fraction}")

    def to_json(self) -> dict[str, Any]:
        """How the sequences were chosen; a list of ids is told by its length."""
        if self.fraction is not None:
            return {"fraction": self.fraction, "seed": self.seed}
        return {"last": self.last} if self.last is not None else {"ids": len(set(self.ids or ()))}


def select_sequences(
    source: Path | str,
    out: Path | str,
    selection: Selection,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write the chosen sequences of the dataset at `source` to `out`; returns the new `dataset.json`.

    `dataset.json` keeps the whole description of the source under `selected_from`.

    >>> from tempfile import TemporaryDirectory
    >>> from oscar_causal import write_dataset
    >>> with TemporaryDirectory() as place:
    ...     drives = {"sequence_id": ["d1", "d2"], "events": [["A", "B"], ["A"]], "times": [[0.0, 9.0], [0.0]]}
    ...     write_dataset(f"{place}/fleet", [pa.table(drives)])
    ...     select_sequences(f"{place}/fleet", f"{place}/last", Selection(last=1))["sequences"]
    1
    """
    source, info = Path(source), read_info(source)
    check_notes(source)
    total = int(info["sequences"])
    if selection.last is not None and selection.last > total:
        raise UsageError(
            f"--last: expected at most {total:,} sequences, as many as {source} has, got {selection.last:,}"
        )
    with dataset_writer(out, force=force) as writer:
        chosen = _copy_sequences(source, writer, selection, total, on_progress or (lambda done, total: None))
        _copy_why(source, writer, chosen)
        for name in KEPT_FILES:
            if (source / name).exists():
                check_file(source / name)
                shutil.copyfile(source / name, writer.folder / name)
        writer.describe(selection=selection.to_json(), selected_from=info)
        return writer.finish()


def _copy_sequences(
    source: Path, writer: DatasetWriter, selection: Selection, total: int, on_progress: Callable[[int, int], None]
) -> pa.Array:
    wanted = pa.array(sorted(set(selection.ids)), pa.string()) if selection.ids is not None else None
    done, chosen = 0, []
    for table in stream_tables(source):
        part = table.filter(pa.array(_mask(table, selection, wanted, total - done)))
        if len(part):
            writer.write(part, where=str(source))
            chosen.append(one_array(part["sequence_id"]))
        done += len(table)
        on_progress(done, total)
    ids = pa.concat_arrays(chosen) if chosen else pa.array([], pa.string())
    if wanted is not None:
        _refuse_unknown(wanted, ids, source)
    if not len(ids):
        raise DataError(f"{source}: expected at least one sequence to select, got none of {total:,}")
    return ids


def _mask(table: pa.Table, selection: Selection, wanted: pa.Array | None, left: int) -> npt.NDArray[np.bool_]:
    """`left`: sequences of the dataset from this table on."""
    if wanted is not None:
        return np.asarray(pc.is_in(one_array(table["sequence_id"]), wanted).to_numpy(zero_copy_only=False), bool)
    if selection.fraction is not None:
        return held_out(_for_selection(one_array(table["subject_id"])), selection.fraction, seed=selection.seed)
    return np.arange(left, left - len(table), -1) <= (selection.last or 0)


def _for_selection(subject_ids: pa.Array) -> pa.Array:
    """Names with a hash of their own: by the plain one training holds out just those that would be selected."""
    return pc.binary_join_element_wise("select", subject_ids, ":")


def _refuse_unknown(wanted: pa.Array, found: pa.Array, source: Path) -> None:
    missing = wanted.filter(pc.invert(pc.is_in(wanted, found)))
    if len(missing):
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise DataError(f"--ids: expected sequences of {source}, got {missing[0].as_py()!r}{more}, not in it")


def _copy_why(source: Path, writer: DatasetWriter, chosen: pa.Array) -> None:
    for table in stream_why(source):
        part = table.filter(pc.is_in(table["sequence_id"], chosen))
        if len(part):
            writer.write_why(part)


def read_ids(path: Path | str) -> tuple[str, ...]:
    """Sequence ids from a file: one per line, or a JSON list of text when its name ends in .json."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        ids = parse_json(text) if path.suffix.lower() == ".json" else text.splitlines()
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{path}: expected one id per line in UTF-8, or a JSON list of ids: {reason}") from error
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise DataError(f"{path}: expected a JSON list of ids in text, got something else")
    found = tuple(name for name in ids if name)
    if not found:
        raise DataError(f"{path}: expected at least one id, got none")
    return found
