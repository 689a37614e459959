"""Events without which a way to a label was never seen.

Of `(A >= 4) & C` nobody may ever have seen the four A without C. Then nothing in the data tells whether the label needs
C: given `A >= 4` it adds nothing, and neither tests nor likelihoods will name it. But elsewhere A comes without C often
enough, and so it is no accident that where four of them brought the label C was there every single time. Such a
companion joins the boundary, and its reading says what is guessed of any event that was never seen missing
(`reading.WITHOUT`).

An event that merely belongs to one of the feature's events, as its twin or its forerunner, is with it everywhere, and
no companion. One that always follows the label itself would be taken for one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from oscar_causal.data.rules import Event, event_names
from oscar_causal.data.rules.tree import Atom
from oscar_causal.discovery.pools import ALPHA, Candidates


def companions(candidates: Candidates, raising: Sequence[Atom]) -> list[Event]:
    """The companions of the features that raise a label, in the order of these features."""
    members = {name for atom in raising for name in event_names(atom)}
    found: dict[Event, None] = {}
    for atom in raising:
        if not isinstance(atom, Event):  # what is always with an event belongs to it
            found |= dict.fromkeys(event for event in _always_with(candidates, atom) if event.name not in members)
    return list(found)


def _always_with(candidates: Candidates, atom: Atom) -> list[Event]:
    """Events that are wherever feature and label are, which is no chance, nor because the feature's own events bring
    them along: over all event types by how frequent they are, then one by one by their share elsewhere.
    """
    fleet, rows = candidates.fleet, candidates.rows_of(atom)
    rows = rows[candidates.came[rows]]
    if not len(rows):
        return []
    table, elsewhere = fleet.table, np.ones(fleet.table.n_rows, bool)
    elsewhere[rows] = False
    alone = [part[elsewhere[part]] for part in (table.rows_of(fleet.index.ids[name]) for name in event_names(atom))]
    frequency = table.totals[: table.n_events] / table.n_rows
    always = np.flatnonzero(fleet.held_in(rows) == len(rows))
    found = []
    for number in always[frequency[always] ** len(rows) <= ALPHA / table.n_events].tolist():
        holds = np.zeros(table.n_rows, bool)
        holds[table.rows_of(number)] = True
        if max(_share(holds, part) for part in alone) ** len(rows) <= ALPHA:
            found.append(Event(table.names[number]))
    return found


def _share(holds: npt.NDArray[np.bool_], rows: npt.NDArray[np.int64]) -> float:
    """Of the rows that hold it, and of one more that does: few rows say little, none nothing."""
    return float((np.count_nonzero(holds[rows]) + 1) / (len(rows) + 1))
