"""Do the variants that interventions make occur at all? Of each event of a boundary: was it ever seen to be missing?

Taking an event out of a sequence makes one without it that still holds the other events of the boundary. Where no
sequence of the fleet holds another event and lacks this one, the model has never seen the like, and nothing in the data
tells the two apart, whatever it answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from oscar_causal.data.sequences import Dataset
from oscar_causal.graph.population import BOUNDARY_SCHEMA
from oscar_causal.graph.population_folder import Population
from oscar_causal.graph.rules.mining import Mined

LEAST = 5
"""An event seen in fewer sequences shows nothing by never being seen without another."""
Counts = dict[tuple[str, str, str], int]
"""(label, event, other) -> sequences that hold the other event and not this one."""


def count_variants(datasets: Iterable[Dataset], members: Mapping[str, Sequence[str]]) -> Counts:
    """For every two members of a label, over all sequences; others seen in fewer than `LEAST` of them are left out."""
    counts: Counts = {}
    seen: dict[str, int] = {}
    wanted = sorted({event for events in members.values() for event in events})
    for dataset in datasets:
        index = Mined(dataset).index
        holders = {event: np.unique(index.sequence_of[index.rows_of(event)]) for event in wanted}
        for event, rows in holders.items():
            seen[event] = seen.get(event, 0) + len(rows)
        for label, events in members.items():
            for event in events:
                for other in events:
                    if other != event:
                        without = len(np.setdiff1d(holders[other], holders[event], assume_unique=True))
                        counts[label, event, other] = counts.get((label, event, other), 0) + without
    return {key: number for key, number in counts.items() if seen[key[2]] >= LEAST}


def with_variants(population: Population, datasets: Sequence[Dataset]) -> Population:
    """The population with `seen_without` and `never_without` of its boundaries, and with them in its prior."""
    members: dict[str, list[str]] = {}
    table = population.boundaries
    for row in table.select(["label", "event", "verdict"]).to_pylist():
        if row["verdict"] in ("cause", "inhibitor"):
            members.setdefault(row["label"], []).append(row["event"])
    fewest: dict[tuple[str, str], int] = {}
    never: dict[tuple[str, str], list[str]] = {}
    for (label, event, other), number in count_variants(datasets, members).items():
        fewest[label, event] = min(number, fewest.get((label, event), number))
        never.setdefault((label, event), []).extend([] if number else [other])
    keys = list(zip(table["label"].to_pylist(), table["event"].to_pylist(), strict=True))
    for name, values in (("seen_without", fewest), ("never_without", never)):
        field = BOUNDARY_SCHEMA.field(name)
        column = pa.array([values.get(key) for key in keys], field.type)
        table = table.set_column(BOUNDARY_SCHEMA.get_field_index(name), field, column)
    prior = population.prior
    if prior is not None:
        told = {
            label: {e: tuple(never[label, e]) for e in events if never.get((label, e))}
            for label, events in members.items()
        }
        prior = replace(prior, never_without={label: part for label, part in told.items() if part})
    return replace(population, boundaries=table, prior=prior)
