"""A world whose mechanism is a real program: events are SQL statements, SQLite runs them, labels are facts of the end.

Every label has a database and a connection of its own (`d00: UPDATE ...`): transactions and savepoints belong to a
connection, so a ROLLBACK of one label undoes nothing of another, and only a label's own statements can matter for it.
When the record ends the connections close, and what was not committed is lost. P(label) is high where the fact holds
and a small floor elsewhere. Reasons are by replay without all statements of a type, alone and in sets (`reasons`).
Read `sql_facts` (what is run and asked for), then `sql_scripts` (how it is run and planted), then this.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oscar_causal.data.synthetic.worlds.kinds import DAY, HOUR, log_uniform, uniform
from oscar_causal.data.synthetic.worlds.occurrences import NONE, Float, Occurrences, Recorded
from oscar_causal.data.synthetic.worlds.reasons import DELTA
from oscar_causal.data.synthetic.worlds.sql_facts import FACTS, Rng
from oscar_causal.data.synthetic.worlds.sql_scripts import (
    Fact,
    Script,
    make_fact,
    plant_script,
    script_positions,
    script_reasons,
)
from oscar_causal.data.synthetic.worlds.truth import Explained
from oscar_causal.data.synthetic.worlds.world import LEAST_DAYS, MOST_DAYS, Drawn
from oscar_causal.errors import UsageError

SQL = "sql"


@dataclass(frozen=True)
class SqlMechanism:
    """How one label comes about, as `Mechanism` is for a formula."""

    label: str
    types: tuple[int, ...]
    """Event types of its statements, in the order of the program."""
    fact: Fact

    @property
    def causes(self) -> tuple[int, ...]:
        """Indices of the statements that can bring the label about: the perfect boundary, read by presence."""
        return tuple(sorted(self.fact.boundary))

    def scripts(self, seen: Occurrences) -> Iterator[Script]:
        """The statements of each sequence, in order."""
        return (tuple(row[row != NONE].tolist()) for row in seen.types)

    def probs(self, seen: Occurrences) -> Float:
        """(n,): P(label | the statements), by running them."""
        return self.fact.probs(self.scripts(seen))


@dataclass(frozen=True)
class SqlWorld:
    """Everything that a seed decides; to what writes datasets it looks like `World`."""

    seed: int
    facts: tuple[Fact, ...]
    frequencies: Float
    """How often each unrelated statement is drawn."""
    mean_length: float
    kind: str = SQL
    has_values: bool = False
    has_static: bool = False

    @cached_property
    def event_names(self) -> list[str]:
        """Statements, each with the database it is run on; the last event closes the connections."""
        own = [f"d{y:02d}: {text}" for y, fact in enumerate(self.facts) for text in fact.program.statements]
        unrelated = [f"d{y:02d}: {text}" for y, fact in enumerate(self.facts) for text in fact.program.unrelated]
        return [*own, *unrelated, "CLOSE"]

    @property
    def label_names(self) -> list[str]:
        """The kinds of facts."""
        return [fact.program.kind for fact in self.facts]

    @cached_property
    def mechanisms(self) -> list[SqlMechanism]:
        """One for each label."""
        ends = np.cumsum([len(fact.program.statements) for fact in self.facts]).tolist()
        return [
            SqlMechanism(fact.program.kind, tuple(range(end - len(fact.program.statements), end)), fact)
            for fact, end in zip(self.facts, ends, strict=True)
        ]

    def probs(self, recorded: Recorded) -> Float:
        """(n, Y): P(label | recorded sequence), by running the statements."""
        width = len(self.event_names)
        return np.stack([m.probs(recorded.occurrences(m.types, width)) for m in self.mechanisms], axis=1)

    def probs_of(self, sequences: Sequence[Sequence[str]]) -> Float:
        """(n, Y): the same for sequences of event names in order, whichever events were left out or replaced."""
        number = {name: i for i, name in enumerate(self.event_names)}
        unknown = next((name for row in sequences for name in row if name not in number), None)
        if unknown is not None:
            raise UsageError(f"event: expected a statement of this world, got {unknown!r}")
        return self.probs(_join([[(number[name], 0.0) for name in row] for row in sequences]))


def make_sql_world(seed: int) -> SqlWorld:
    """The world of this seed: one label for each kind of fact, in an order and with constants that the seed draws."""
    rng = _stream(seed, "constants")
    facts = tuple(make_fact(rng, FACTS[i]) for i in rng.permutation(len(FACTS)))
    count = sum(len(fact.program.unrelated) for fact in facts)
    weights = rng.permutation(np.arange(1, count + 1) ** -uniform(rng, 0.6, 1.1))
    return SqlWorld(seed, facts, weights / weights.sum(), uniform(rng, 25, 45))


def draw_sql(world: SqlWorld, count: int, part: str) -> Drawn:
    """`count` sequences; `part` (train, test, ...) names an independent stream of them."""
    rng = _stream(world.seed, part)
    recorded = _join([_sequence(rng, world) for _ in range(count)])
    probs = world.probs(recorded)
    return Drawn(recorded, rng.random(probs.shape) < probs, np.full(probs.shape, np.nan))


def explain_sql(world: SqlWorld, drawn: Drawn, delta: float = DELTA) -> list[Explained]:
    """Reasons for every (sequence, label) of `drawn` in which the label came, in order of label and sequence."""
    explained = []
    for y, mechanism in enumerate(world.mechanisms):
        rows = np.flatnonzero(drawn.labels[:, y])
        chosen = drawn.recorded.rows(rows)
        scripts = mechanism.scripts(chosen.occurrences(mechanism.types, len(world.event_names)))
        for i, script in enumerate(scripts):
            found = tuple(script_reasons(mechanism.fact, script, delta))
            events = chosen.events[chosen.offsets[i] : chosen.offsets[i + 1]]
            place = np.flatnonzero(np.isin(events, mechanism.types)).tolist()
            at = tuple(tuple(place[j] for j in script_positions(mechanism.fact, script, r, delta)) for r in found)
            own = sorted(set(script))
            present = tuple(mechanism.types[t] for t in own)
            boundary = tuple(mechanism.types[t] for t in own if t in mechanism.fact.boundary)
            explained.append(Explained(int(rows[i]), y, present, boundary, found, at))
    return explained


def _stream(seed: int, purpose: str) -> Rng:
    return np.random.default_rng([seed, zlib.crc32(SQL.encode()), zlib.crc32(purpose.encode())])


def _sequence(rng: Rng, world: SqlWorld) -> list[tuple[int, float]]:
    """(event type, seconds) of one sequence: unrelated statements, the scripts of all labels, and the end."""
    end_s = uniform(rng, LEAST_DAYS, MOST_DAYS) * DAY
    close = len(world.event_names) - 1
    first = close - len(world.frequencies)
    count = int(rng.poisson(world.mean_length * rng.gamma(4.0, 0.25)))
    kinds = first + rng.choice(len(world.frequencies), size=count, p=world.frequencies)
    events = list(zip(kinds.tolist(), rng.uniform(0, end_s, size=count).tolist(), strict=True))
    for mechanism in world.mechanisms:
        script = plant_script(rng, mechanism.fact)
        span = log_uniform(rng, HOUR, end_s)
        times = np.sort(uniform(rng, 0, end_s - span) + rng.uniform(0, span, size=len(script)))
        events += zip((mechanism.types[t] for t in script), times.tolist(), strict=True)
    return [*sorted(events, key=lambda event: event[1]), (close, end_s)]


def _join(rows: list[list[tuple[int, float]]]) -> Recorded:
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    flat = np.array([event for row in rows for event in row], float).reshape(-1, 2)
    return Recorded(
        offsets, flat[:, 0].astype(np.int64), flat[:, 1], np.full(len(flat), np.nan), np.zeros((len(rows), 0))
    )
