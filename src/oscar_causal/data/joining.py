"""Several datasets as one: what is counted over all of them is counted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.data.sequences import Dataset, Ragged, ragged_offsets


def joined(datasets: Sequence[Dataset]) -> Dataset:
    """The sequences of all datasets, one after the other, with the names of all; numeric channels are left out.

    Sequences of different datasets may have the same id.
    """
    if len(datasets) == 1:
        return datasets[0]
    events = tuple(sorted({name for data in datasets for name in data.event_names}))
    labels = tuple(sorted({name for data in datasets for name in data.label_names}))
    return Dataset(
        pa.concat_arrays([data.sequence_ids for data in datasets]),
        pa.concat_arrays([data.subject_ids for data in datasets]),
        pa.concat_arrays([data.start for data in datasets]),
        events,
        labels,
        _renamed([(data.events, data.event_names) for data in datasets], events),
        _renamed([(data.labels, data.label_names) for data in datasets], labels),
        np.concatenate([data.labelled for data in datasets]),
        (),
        {},
        None,
        lambda name: pa.concat_arrays([data._column(name) for data in datasets]),  # noqa: SLF001 - of the same class
    )


def _renamed(parts: Sequence[tuple[Ragged, tuple[str, ...]]], names: tuple[str, ...]) -> Ragged:
    """Lists end to end, with the ids that the names have among all names."""
    number = {name: place for place, name in enumerate(names)}
    tables: list[npt.NDArray[np.int32]] = [np.array([number[name] for name in old], np.int32) for _, old in parts]
    ids = [table[part.ids] for table, (part, _) in zip(tables, parts, strict=True)]
    return Ragged(ragged_offsets(np.concatenate([part.lengths for part, _ in parts])), np.concatenate(ids))
