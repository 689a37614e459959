"""What can be picked: the sequences of a dataset, the events of the model, and their descriptions."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from oscar_causal.data.folders import read_json
from oscar_causal.data.sequences import Dataset, Int64, read_dataset
from oscar_causal.density.folds import ModelSet
from oscar_causal.errors import FolderError
from oscar_causal.serve import limits
from oscar_causal.serve.answers import EventName, EventNames, SequenceList, SequenceRow
from oscar_causal.serve.payloads import Sequence


class Catalogue:
    """Searches a dataset (or nothing) and the model's vocabulary."""

    def __init__(self, models: ModelSet, dataset: Path | str | None = None) -> None:
        self._models = models
        self.data: Dataset | None = None if dataset is None else read_dataset(dataset)
        self.names: dict[str, str] = {} if dataset is None else _read_names(Path(dataset) / "names.json")

    def describe(self, events: list[str]) -> dict[str, str]:
        """Descriptions of these events, as far as there are any."""
        return {event: self.names[event] for event in dict.fromkeys(events) if event in self.names}

    def events(self, search: str, limit: int) -> EventNames:
        """Events of the model whose name or description holds the text, whatever its case; frequent ones first."""
        wanted = search.casefold()
        found = [k for k, text in enumerate(self._event_texts) if wanted in text]
        events = [self._models.vocabulary.events[k] for k in found[:limit]]
        rows = [EventName(event=event, description=self.names.get(event)) for event in events]
        return EventNames(total=len(found), events=rows)

    def sequences(self, data: Dataset, search: str, offset: int, limit: int, *, unseen: bool = False) -> SequenceList:
        """Sequences whose id, subject or recorded label holds the text, in the dataset's order.

        `unseen`: only those that the model judging them was not trained on.
        """
        found = _matching(data, search)
        found = found[~self._seen[found]] if unseen else found
        rows = found[offset : offset + limit]
        part, seen = data.take(rows), self._seen[rows]
        listed = [
            SequenceRow(
                sequence_id=part.sequence_ids[k].as_py(),
                subject_id=part.subject_ids[k].as_py(),
                events=int(part.lengths[k]),
                labels=part.labels_of(k) if part.labelled[k] else None,
                seen_in_training=bool(seen[k]),
            )
            for k in range(len(rows))
        ]
        return SequenceList(total=len(found), sequences=listed)

    def sequence(self, data: Dataset, sequence_id: str) -> Sequence:
        """One sequence as a client would send it, with the channels the model reads; an unknown id is a DataError.

        Only the last events within the limit of the service are given.
        """
        part = data.take(data.index_of([sequence_id]))
        begin = max(0, int(part.lengths[0]) - limits.EVENTS)
        channels = {
            name: part.channel(name)[begin:].tolist() for name in self._models.channels if name in part.channels
        }
        return Sequence.model_construct(  # a dataset may hold longer names than a client may send
            sequence_id=sequence_id,
            subject_id=part.subject_ids[0].as_py(),
            events=part.events_of(0)[begin:],
            times=part.times[begin:].tolist(),
            channels={name: [None if v != v else v for v in values] for name, values in channels.items()},
            labels=part.labels_of(0) if part.labelled[0] else None,
        )

    @cached_property
    def _seen(self) -> npt.NDArray[np.bool_]:
        """For each sequence of the dataset: was its subject seen in training?"""
        if self.data is None:
            return np.zeros(0, bool)
        return self._models.seen_in_training(self.data.subject_ids)

    @cached_property
    def _event_texts(self) -> list[str]:
        return [f"{event} {self.names.get(event, '')}".casefold() for event in self._models.vocabulary.events]


def _matching(data: Dataset, search: str) -> Int64:
    if not search:
        return np.arange(len(data))
    hits = np.zeros(len(data), bool)
    for column in (data.sequence_ids, data.subject_ids):
        hits |= pc.match_substring(column, search, ignore_case=True).to_numpy(zero_copy_only=False)
    wanted = search.casefold()
    labels = [k for k, name in enumerate(data.label_names) if wanted in name.casefold()]
    hits[data.labels.rows()[np.isin(data.labels.ids, labels)]] = True
    return np.flatnonzero(hits)


def _read_names(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    names = read_json(path)
    if not all(isinstance(text, str) for text in names.values()):
        raise FolderError(f"{path}: expected names with descriptions as text")
    return names
