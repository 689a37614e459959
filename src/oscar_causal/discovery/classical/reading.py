"""A global boundary read in one sequence: those of its features that are there, with their positions.

This is what makes a classical method comparable with one-shot discovery, and also its limit: the sequence's own
evidence plays no part beyond presence (or order, or counts).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from oscar_causal.data.rules import AtLeast, EventIndex, Then, parse
from oscar_causal.data.rules.tree import Atom, atom_names, chain_steps
from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.classical.boundaries import GlobalBoundary, Member
from oscar_causal.discovery.classical.ci_tests import Statistic

Int64 = npt.NDArray[np.int64]
Places = dict[str, tuple[set[int], Member]]
"""Event -> its positions in one sequence, and the member of the boundary that speaks for it."""


def read_per_sequence(
    boundaries: Sequence[GlobalBoundary], dataset: Dataset, *, statistic: Statistic = "g2"
) -> list[Boundary]:
    """One result for each sequence and each label it carries that has a global boundary, also when nothing is there.

    An event with a negative effect that is present is an inhibitor that did not win.

    >>> from oscar_causal.data.sequences import from_records
    >>> data = from_records([{"sequence_id": "1", "events": ["B", "A", "A"], "times": [0, 1, 2], "labels": ["y"]}])
    >>> member = Member("A", 9.0, 0.003, 0.5, 0.1, None)
    >>> found = read_per_sequence([GlobalBoundary("y", (member,), 100, 10, 5, True, 0.1)], data)
    >>> [(item.event, item.positions) for item in found[0].causes]
    [('A', (1, 2))]
    """
    index = _index(boundaries, dataset)
    read: list[tuple[int, int, Boundary]] = []
    ids = dataset.sequence_ids.to_pylist()
    label_of = {name: number for number, name in enumerate(dataset.label_names)}
    carriers = _carriers(dataset)
    for found in boundaries:
        label = label_of.get(found.label, -1)
        rows = carriers.get(label, np.zeros(0, np.int64))
        places = _places(found, index, rows)
        for row in rows.tolist():
            evidence = _evidence(places.get(row, {}), found.rows if statistic == "g2" else None)
            read.append((row, label, _boundary(ids[row], found, evidence)))
    return [item for _, _, item in sorted(read, key=lambda entry: entry[:2])]


def _index(boundaries: Sequence[GlobalBoundary], dataset: Dataset) -> EventIndex:
    ordered = any(isinstance(parse(member.feature), Then) for found in boundaries for member in found.members)
    names = {name: number for number, name in enumerate(dataset.event_names)}
    times = dataset.times if ordered else None  # reading times takes a while; only order needs them
    return EventIndex(dataset.events.offsets, dataset.events.ids, times, names)


def _carriers(dataset: Dataset) -> dict[int, Int64]:
    """Label id -> rows that carry it, ascending."""
    order = np.argsort(dataset.labels.ids, kind="stable")
    ids, begins = np.unique(dataset.labels.ids[order], return_index=True)
    rows = np.split(dataset.labels.rows()[order], begins[1:])
    return dict(zip(ids.tolist(), rows, strict=True))


def _places(found: GlobalBoundary, index: EventIndex, rows: Int64) -> dict[int, Places]:
    """For each of the rows: the events of the boundary that are there."""
    wanted = np.zeros(index.sequences, bool)
    wanted[rows] = True
    places: dict[int, Places] = {}
    for member in found.members:
        for event, at in _taking_part(parse(member.feature), index):  # type: ignore[arg-type]
            sequence = index.sequence_of[at]
            kept = wanted[sequence]
            position = (at - index.offsets[sequence])[kept]
            for row, place in zip(sequence[kept].tolist(), position.tolist(), strict=True):
                spots, speaker = places.setdefault(row, {}).setdefault(event, (set(), member))
                spots.add(place)
                if member.p_value < speaker.p_value:
                    places[row][event] = (spots, member)
    return places


def _taking_part(atom: Atom, index: EventIndex) -> Iterator[tuple[str, Int64]]:
    """For each event of a feature, its occurrences that take part in making it hold."""
    if isinstance(atom, Then):
        yield from zip(chain_steps(atom)[0], index.rows_by_step(atom), strict=True)
        return
    rows = index.rows_of(atom_names(atom)[0])
    if isinstance(atom, AtLeast):
        rows = rows[index.holds(atom)[index.sequence_of[rows]]]
    yield atom_names(atom)[0], rows


def _evidence(places: Places, rows: int | None) -> tuple[EventEvidence, ...]:
    items = []
    for event, (spots, member) in sorted(places.items()):
        effect, error = member.effect, member.effect_se
        low, high = (None, None) if effect is None or error is None else _interval(effect, error)
        items.append(
            EventEvidence(
                event,
                tuple(sorted(spots)),
                "inhibitor" if effect is not None and effect < 0 else "cause",
                effect or 0.0,
                error,
                p_value=member.p_value,
                score=member.statistic,
                indicator=effect,
                indicator_se=error,
                ci_low=low,
                ci_high=high,
                cmi_nats=member.statistic / (2 * rows) if rows else None,
            )
        )
    return tuple(items)


def _interval(effect: float, error: float) -> tuple[float, float]:
    """95 % by the normal law, inside -1 .. 1."""
    return max(-1.0, effect - 1.96 * error), min(1.0, effect + 1.96 * error)


def _boundary(sequence_id: str, found: GlobalBoundary, evidence: tuple[EventEvidence, ...]) -> Boundary:
    return Boundary(
        sequence_id,
        found.label,
        observed=True,
        probability=None,
        evidence=evidence,
        trusted=None if found.complete else False,
        seen_in_training=True,  # the boundary was learnt from these very sequences
        flags=() if found.complete else ("incomplete",),
    )
