"""Scripts of SQL statements: run by SQLite, and planted so that a fact holds, or nearly holds, at the end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from oscar_causal.data.synthetic.worlds.kinds import log_uniform, uniform, whole
from oscar_causal.data.synthetic.worlds.occurrences import Bool, Float
from oscar_causal.data.synthetic.worlds.reasons import DELTA, Reason, mattering, reasons, subsets
from oscar_causal.data.synthetic.worlds.sql_facts import Program, Rng

LEAST_TYPES, MOST_TYPES = 9, 10
"""Types of statements in a crowded script; so few that every set of them can be left out in the replay."""
MOST_REPEATS = 2
LONGEST_WAY = 7
FEWEST_WAYS = 3
PILOT = 60
"""Scripts in which the fact holds: random ones from which the ways are known, crowded ones for the boundary."""
CROWDS, PERMUTATIONS = 8, 20
"""Tries to have a crowded script in which the way is needed, and an order of it in which the fact does not hold."""
TRIES = 20_000
"""Scripts drawn at most until one is as wanted."""
WRITING = ("INSERT", "UPDATE", "DELETE", "REPLACE")
"""Statements that may meet no row; the others do something unless they are refused."""
REMEMBERED = 1_000_000
"""Replays whose outcome is kept for each database."""

Script = tuple[int, ...]
"""Statements of one program, by their number there."""


@dataclass(frozen=True)
class Outcome:
    """What came of a script."""

    holds: bool
    """Whether the fact holds after the statements and the end of the connection."""
    effective: tuple[bool, ...]
    """For each statement whether it did anything; without one that was refused or met no row all would be the same."""


class Database:
    """Replays scripts of one program, each from the same first state."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[Script, Outcome] = {}
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        for text in ("PRAGMA foreign_keys = ON", *program.setup):
            self._connection.execute(text)
        self._first_state = sqlite3.connect(":memory:")
        self._connection.backup(self._first_state)
        self._rows = _emptied_and_filled(program)
        self._version = self._schema_version()

    def holds(self, script: Script) -> bool:
        """Whether the fact holds after these statements."""
        return self.run(script).holds

    def run(self, script: Script) -> Outcome:
        """What comes of these statements."""
        known = self._known.get(script)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[script] = self._replay(script)
        return known

    def _replay(self, script: Script) -> Outcome:
        self._restore()
        effective = tuple(self._execute(self.program.statements[number]) for number in script)
        if self._connection.in_transaction:
            self._connection.rollback()  # closing a connection loses what is not committed
        try:
            return Outcome(self._connection.execute(self.program.fact).fetchone() is not None, effective)
        except sqlite3.OperationalError:  # the table it asks for is gone
            return Outcome(False, effective)

    def _execute(self, text: str) -> bool:
        before = self._connection.total_changes
        try:
            self._connection.execute(text)
        except (sqlite3.IntegrityError, sqlite3.OperationalError):
            return False
        return not text.startswith(WRITING) or self._connection.total_changes > before

    def _restore(self) -> None:
        if self._schema_version() == self._version:  # much faster: prepared statements stay as they are
            for text in self._rows:
                self._connection.execute(text)
            return
        self._first_state.backup(self._connection)  # statements are prepared anew; after `deserialize` they are not
        self._version = self._schema_version()

    def _schema_version(self) -> int:
        return int(self._connection.execute("PRAGMA schema_version").fetchone()[0])


def _emptied_and_filled(program: Program) -> list[str]:
    """Statements that bring the first rows back where the schema is as it was."""
    tables = [text.split()[2] for text in program.setup if text.startswith("CREATE TABLE")]
    rows = [text for text in program.setup if text.startswith("INSERT")]
    return [*(f"DELETE FROM {table}" for table in reversed(tables)), *rows]


@lru_cache(maxsize=256)
def database(program: Program) -> Database:
    """The database of this program in this process."""
    return Database(program)


@dataclass(frozen=True)
class Fact:
    """One label: its program, the ways that bring it about, and how scripts are planted."""

    program: Program
    ways: tuple[Script, ...]
    """Scripts that bring the fact about and of which no statement can be left out."""
    boundary: Script
    """Statements that can bring the fact about."""
    floor: float
    """P(label) where the fact does not hold."""
    high: float
    """P(label) where it holds."""
    involved: float
    """Share of sequences that hold a script."""
    active: float
    """Of these, the share in which the fact holds."""
    crowded: float
    """Of those, the share in which other statements stand among those of a way."""
    doubled: float
    """Of crowded scripts, the share into which a second way is put, in its own order."""
    shuffled: float
    """Of scripts without the fact, the share that has it in another order; the others are drawn at random."""

    def probs(self, scripts: Iterable[Script]) -> Float:
        """P(label) after each of the scripts."""
        runs = database(self.program)
        return np.array([self.high if runs.holds(script) else self.floor for script in scripts])


def make_fact(rng: Rng, draft: Callable[[Rng], Program]) -> Fact:
    """A label of this kind: rate 0.03 to 0.3, 40 to 60 % of its scripts active, 88 to 98 % of those crowded."""
    program, ways = _program_with_ways(rng, draft)
    target, active = log_uniform(rng, 0.03, 0.3), uniform(rng, 0.4, 0.6)
    floor, high = min(uniform(rng, 0.002, 0.01), target / 20), 1 - uniform(rng, 0.002, 0.02)
    involved = min(target / (active * high), 0.9)
    doubled, crowded, shuffled = uniform(rng, 0.5, 0.9), uniform(rng, 0.88, 0.98), uniform(rng, 0.5, 0.8)
    fact = Fact(program, ways, (), floor, high, involved, active, crowded, doubled, shuffled)
    return replace(fact, boundary=_boundary(rng, fact))


def plant_script(rng: Rng, fact: Fact) -> Script:
    """The statements of one label in one sequence, in order; empty where it is not involved."""
    if rng.random() >= fact.involved:
        return ()
    if rng.random() < fact.active:
        return _crowd(rng, fact) if rng.random() < fact.crowded else fact.ways[int(rng.integers(len(fact.ways)))]
    script = _crowd(rng, fact) if rng.random() < fact.shuffled else ()
    for tries in range(TRIES):  # some scripts hold in any order
        permuted = script and tries < PERMUTATIONS
        tried = tuple(rng.permutation(script).tolist()) if permuted else _random(rng, fact.program)
        if not database(fact.program).holds(tried):
            return tried
    raise AssertionError(f"{fact.program.kind}: the fact holds in every script")


def script_reasons(fact: Fact, script: Script, delta: float = DELTA) -> list[Reason]:
    """The role of each type of statement; `type` and `contingency` are indices into the sorted types."""
    present = sorted(set(script))
    bits = [1 << present.index(number) for number in script]
    runs = database(fact.program)
    known: dict[int, tuple[bool, int]] = {}  # types that are gone -> whether the fact holds, types that did anything
    for gone in subsets(len(present)):
        more = (known[gone ^ bit] for bit in set(bits) if gone & bit and not known[gone ^ bit][1] & bit)
        same = next(more, None)  # with one more type, which did nothing there
        if same is None:
            kept = [(number, bit) for number, bit in zip(script, bits, strict=True) if not gone & bit]
            outcome = runs.run(tuple(number for number, _ in kept))
            used = {bit for (_, bit), effective in zip(kept, outcome.effective, strict=True) if effective}
            same = (outcome.holds, sum(used))
        known[gone] = same
    probs = [fact.high if holds else fact.floor for holds, _ in known.values()]
    return reasons(np.array(probs), len(present), delta)


def script_positions(fact: Fact, script: Script, reason: Reason, delta: float = DELTA) -> list[int]:
    """Where in the script the occurrences stand that mattered."""
    present = sorted(set(script))
    gone = {present[t] for t in reason.contingency}
    columns = [j for j, number in enumerate(script) if number == present[reason.type]]
    sign = 1.0 if reason.fall >= 0 else -1.0

    def prob_of(kept: Bool) -> Float:
        left_out = ({columns[j] for j in np.flatnonzero(~row)} for row in kept)
        scripts = (tuple(t for j, t in enumerate(script) if t not in gone and j not in out) for out in left_out)
        return sign * fact.probs(scripts)

    return [columns[j] for j in mattering(prob_of, len(columns), delta)]


def _program_with_ways(rng: Rng, draft: Callable[[Rng], Program]) -> tuple[Program, tuple[Script, ...]]:
    for _ in range(TRIES):
        program = draft(rng)
        ways = _ways(rng, program)
        if len(ways) >= FEWEST_WAYS:
            return program, ways
    raise AssertionError(f"{draft.__name__}: no constants give {FEWEST_WAYS} ways")


def _ways(rng: Rng, program: Program) -> tuple[Script, ...]:
    """Ways, from random scripts; none where the fact hardly ever holds."""
    found: dict[Script, None] = {}
    positive = 0
    for _ in range(TRIES):
        script = _random(rng, program)
        if _as_planted(program, script):
            positive += 1
            way = _least(rng, program, script)
            if len(way) <= LONGEST_WAY:
                found[way] = None
        if positive == PILOT:
            return tuple(found)
    return ()


def _as_planted(program: Program, script: Script) -> bool:
    runs = database(program)
    if not program.by or not runs.holds(script):
        return runs.holds(script)
    return not runs.holds(tuple(t for t in script if not program.statements[t].startswith(program.by)))


def _least(rng: Rng, program: Program, script: Script) -> Script:
    """The script without what can be left out, tried in random order until nothing can."""
    for j in rng.permutation(len(script)):
        shorter = (*script[:j], *script[j + 1 :])
        if _as_planted(program, shorter):
            return _least(rng, program, shorter)
    return script


def _random(rng: Rng, program: Program) -> Script:
    return tuple(rng.integers(len(program.statements), size=whole(rng, 4, MOST_TYPES)).tolist())


def _crowd(rng: Rng, fact: Fact) -> Script:
    """A way among other statements, 9 or 10 types in all; if it can be had, one whose end is still needed."""
    script = _crowded_once(rng, fact)
    for _ in range(CROWDS - 1):
        if not database(fact.program).holds(tuple(t for t in script[1] if t != script[0][-1])):
            break
        script = _crowded_once(rng, fact)
    return script[1]


def _crowded_once(rng: Rng, fact: Fact) -> tuple[Script, Script]:
    """A way, and a script that holds it: maybe a second way, then single statements, those of ways more often."""
    way = fact.ways[int(rng.integers(len(fact.ways)))]
    script, most = way, whole(rng, LEAST_TYPES, MOST_TYPES)
    if rng.random() < fact.doubled:
        script = _merged(rng, fact.program, fact.ways[int(rng.integers(len(fact.ways)))], way)
    useful = {number for some in fact.ways for number in some}
    weights = np.array([4.0 if t in useful else 1.0 for t in range(len(fact.program.statements))])
    others = rng.choice(len(weights), size=len(weights), replace=False, p=weights / weights.sum()).tolist()
    for number in (t for t in others if t not in script):
        if len(set(script)) < most:
            script = _with(rng, fact.program, script, number)
    for number in rng.choice(script, size=whole(rng, 0, MOST_REPEATS)).tolist():
        script = _with(rng, fact.program, script, number)
    return way, script


def _merged(rng: Rng, program: Program, other: Script, way: Script) -> Script:
    """Both ways, each in its order, unless the fact is lost by it or they are too many types."""
    first = np.zeros(len(other) + len(way), bool)
    first[rng.permutation(len(first))[: len(other)]] = True
    left, right = iter(other), iter(way)
    both = tuple(next(left) if is_first else next(right) for is_first in first)
    return both if len(set(both)) <= MOST_TYPES and _as_planted(program, both) else way


def _with(rng: Rng, program: Program, script: Script, number: int) -> Script:
    """The script with one more statement, unless the fact is lost by it."""
    at = int(rng.integers(len(script) + 1))
    longer = (*script[:at], number, *script[at:])
    return longer if _as_planted(program, longer) else script


def _boundary(rng: Rng, fact: Fact) -> Script:
    """Statements of a way, and those without which the fact is lost in some crowded script (COMMIT, for one)."""
    runs = database(fact.program)
    found = {number for way in fact.ways for number in way}
    for _ in range(PILOT):
        script = _crowd(rng, fact)
        found |= {number for number in set(script) if not runs.holds(tuple(t for t in script if t != number))}
    return tuple(sorted(found))
