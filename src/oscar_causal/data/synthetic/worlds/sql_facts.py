"""Twelve kinds of facts about a database that statements of SQL bring about; every constant is drawn by the seed.

A kind is a function that drafts one program: the schema and first rows of a database of its own, the statements that
may be run on it, a query that tells whether the fact holds in the end, and statements on a table it does not ask for.
Most kinds have 3 or 4 pairs of statements that lead to the fact only together, in order, and if nothing came between;
each of them does nothing, or harm, in another state. Keys and values are 1 to 99 where no other range is written. Every
optional statement takes part with probability 0.75, and two thirds of the programs have transaction control, by BEGIN
or by SAVEPOINT. A statement that a constraint, a missing table or the state of the transaction refuses changes nothing,
and the next one is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Rng = np.random.Generator

OPTIONAL = 0.75
"""Share of the optional statements that take part."""
BLOCKS = (("BEGIN", "COMMIT", "ROLLBACK"), ("SAVEPOINT s", "RELEASE s", "ROLLBACK TO s"))


@dataclass(frozen=True)
class Program:
    """One database, what may be run on it, and the fact that is asked for."""

    kind: str
    setup: tuple[str, ...]
    statements: tuple[str, ...]
    fact: str
    """A query that returns a row where the fact holds; the fact does not hold after `setup`."""
    unrelated: tuple[str, ...]
    """Statements on the same database that cannot change the fact."""
    by: str = ""
    """Statements that begin so must have brought the fact about where it is planted: it does not hold without them."""


def overwritten(rng: Rng) -> Program:
    """A cell has the value that only overwriting another one gives; any later write undoes it."""
    key, goal, last, *values = _numbers(rng, 3 + _pairs(rng))
    return _program(
        rng,
        "overwritten",
        ["CREATE TABLE cell (id INTEGER PRIMARY KEY, v INTEGER)", f"INSERT INTO cell VALUES ({key}, {last})"],
        [
            *(f"UPDATE cell SET v = {v} WHERE id = {key}" for v in values),
            *(f"UPDATE cell SET v = {goal} WHERE id = {key} AND v = {v}" for v in values),
        ],
        [
            f"REPLACE INTO cell VALUES ({key}, {last})",
            f"UPDATE cell SET v = v + {goal - last} WHERE id = {key}",
            f"DELETE FROM cell WHERE v = {goal}",
        ],
        f"SELECT 1 FROM cell WHERE id = {key} AND v = {goal}",
    )


def rolled_back(rng: Rng) -> Program:
    """A state that was left came back, because the work that left it was rolled back."""
    key, goal, away, *states = _numbers(rng, 3 + _pairs(rng))
    block = BLOCKS[int(rng.integers(2))]
    return _program(
        rng,
        "rolled back",
        [
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, state INTEGER)",
            f"INSERT INTO orders VALUES ({key}, {states[0]})",
        ],
        [
            *(f"UPDATE orders SET state = {state} WHERE id = {key}" for state in states[1:]),
            *(f"UPDATE orders SET state = {goal} WHERE state = {state}" for state in states),
            f"UPDATE orders SET state = {away} WHERE state = {goal}",
            *block,
        ],
        [f"DELETE FROM orders WHERE id = {key}", f"REPLACE INTO orders VALUES ({key}, {away})"],
        f"SELECT 1 FROM orders WHERE id = {key} AND state = {goal}",
        by="ROLLBACK",
        control=False,
    )


def checked(rng: Rng) -> Program:
    """An amount was written under the code that CHECK asks for; while it stands, other codes are refused."""
    key, first, *codes = _numbers(rng, 2 + _pairs(rng))
    rest = int(rng.integers(10))
    return _program(
        rng,
        "checked",
        [
            "CREATE TABLE account (id INTEGER PRIMARY KEY, code INTEGER, amount INTEGER"
            " CHECK (amount = 0 OR amount / 10 = code))",
            f"INSERT INTO account VALUES ({key}, {first}, 0)",
        ],
        [
            *(f"UPDATE account SET code = {code} WHERE id = {key}" for code in codes),
            *(f"UPDATE account SET amount = {10 * code + rest} WHERE id = {key}" for code in codes),
            "UPDATE account SET amount = 0",
        ],
        [
            f"UPDATE account SET code = {first} WHERE amount = 0",
            f"UPDATE account SET code = code + {codes[1] - codes[0]}",
            f"DELETE FROM account WHERE amount > {10 * min(codes) + 9}",
        ],
        f"SELECT 1 FROM account WHERE id = {key} AND amount > 0",
    )


def refused(rng: Rng) -> Program:
    """A guest holds a seat: it was freed before, and UNIQUE refused whoever asked for it later."""
    guest, rival, *numbers = _numbers(rng, 2 + 2 * _pairs(rng))
    seats, first = numbers[::2], numbers[1::2]
    taken = ", ".join(f"({seat}, {holder})" for seat, holder in zip(seats, first, strict=True))
    return _program(
        rng,
        "refused",
        ["CREATE TABLE seat (no INTEGER PRIMARY KEY, guest INTEGER UNIQUE)", f"INSERT INTO seat VALUES {taken}"],
        [
            *(f"DELETE FROM seat WHERE no = {seat}" for seat in seats),
            *(f"INSERT INTO seat VALUES ({seat}, {guest})" for seat in seats),
            f"INSERT INTO seat VALUES ({seats[0]}, {rival})",
        ],
        [
            f"UPDATE seat SET no = {seats[1]} WHERE no = {seats[0]}",
            f"INSERT OR REPLACE INTO seat VALUES ({seats[1]}, {rival})",
            f"DELETE FROM seat WHERE guest IN ({guest}, {rival})",
        ],
        f"SELECT 1 FROM seat WHERE guest = {guest}",
    )


def triggered(rng: Rng) -> Program:
    """A trigger wrote a row into an audit table: the one that existed when the value came."""
    key, first, *values = _numbers(rng, 2 + _pairs(rng))
    write = "BEGIN INSERT INTO audit VALUES (NEW.id, NEW.v); END"
    return _program(
        rng,
        "triggered",
        [
            "CREATE TABLE item (id INTEGER PRIMARY KEY, v INTEGER)",
            "CREATE TABLE audit (id INTEGER, v INTEGER)",
            f"INSERT INTO item VALUES ({key}, {first})",
        ],
        [
            *(f"CREATE TRIGGER hook AFTER UPDATE ON item WHEN NEW.v = {v} {write}" for v in values),
            *(f"UPDATE item SET v = {v} WHERE id = {key}" for v in values),
            "DROP TRIGGER hook",
        ],
        [f"DELETE FROM audit WHERE v < {max(values)}", f"DELETE FROM item WHERE v = {first}", "DELETE FROM audit"],
        f"SELECT 1 FROM audit WHERE id = {key}",
    )


def joined(rng: Rng) -> Program:
    """A row was joined from two tables while both had the same key; what comes later no longer matters."""
    start, other, *keys = _numbers(rng, 5)
    return _program(
        rng,
        "joined",
        [
            "CREATE TABLE a (id INTEGER)",
            "CREATE TABLE b (id INTEGER)",
            "CREATE TABLE result (id INTEGER)",
            f"INSERT INTO a VALUES ({start})",
            f"INSERT INTO b VALUES ({other})",
        ],
        [
            *(f"UPDATE a SET id = {key}" for key in keys),
            *(f"UPDATE b SET id = {key}" for key in keys),
            "INSERT INTO result SELECT a.id FROM a JOIN b ON a.id = b.id",
        ],
        [
            f"INSERT INTO result SELECT a.id FROM a JOIN b ON a.id + b.id = {keys[0] + keys[1]}",
            "DELETE FROM result",
            f"UPDATE b SET id = {start}",
            f"DELETE FROM a WHERE id = {keys[2]}",
        ],
        "SELECT 1 FROM result",
    )


def cascaded(rng: Rng) -> Program:
    """A child row is gone because it stood under a parent that was deleted: ON DELETE CASCADE."""
    child, home, *parents = _numbers(rng, 2 + _pairs(rng))
    return _program(
        rng,
        "cascaded",
        [
            "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
            "CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent ON DELETE CASCADE)",
            f"INSERT INTO parent VALUES {', '.join(f'({p})' for p in (home, *parents))}",
            f"INSERT INTO child VALUES ({child}, {home})",
        ],
        [
            *(f"UPDATE child SET parent = {p} WHERE id = {child}" for p in parents),
            *(f"DELETE FROM parent WHERE id = {p}" for p in parents),
            f"INSERT INTO child VALUES ({child}, {home})",
        ],
        [
            f"INSERT INTO parent VALUES ({parents[0]})",
            f"INSERT INTO child VALUES ({child}, {parents[1]})",
            f"UPDATE child SET parent = {home} WHERE parent = {parents[2]}",
        ],
        f"SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM child WHERE id = {child})",
    )


def upserted(rng: Rng) -> Program:
    """An upsert found the row with the value that it replaces; where the row is missing, it spoils it."""
    key, goal, spoilt, *values = _numbers(rng, 3 + _pairs(rng))
    conflict = "ON CONFLICT (id) DO"
    return _program(
        rng,
        "upserted",
        ["CREATE TABLE register (id INTEGER PRIMARY KEY, v INTEGER)"],
        [
            *(f"INSERT INTO register VALUES ({key}, {v}) {conflict} NOTHING" for v in values),
            *(
                f"INSERT INTO register VALUES ({key}, {spoilt}) {conflict} UPDATE SET v = {goal} WHERE v = {v}"
                for v in values
            ),
            f"DELETE FROM register WHERE id = {key}",
        ],
        [
            f"INSERT INTO register VALUES ({key}, {values[0]}) {conflict} UPDATE SET v = excluded.v",
            f"DELETE FROM register WHERE v = {spoilt}",
            f"UPDATE register SET v = {spoilt} WHERE v <> {goal}",
        ],
        f"SELECT 1 FROM register WHERE id = {key} AND v = {goal}",
    )


def summed(rng: Rng) -> Program:
    """The sum over three rows reaches what takes two large amounts (25 to 40) that no small one (2 to 9) replaced."""
    ids = _numbers(rng, 3)
    large, small = [_numbers(rng, 3, *between) for between in ((25, 40), (2, 9))]
    return _program(
        rng,
        "summed",
        ["CREATE TABLE sale (id INTEGER PRIMARY KEY, amount INTEGER)"],
        [
            *(f"REPLACE INTO sale VALUES ({i}, {amount})" for i, amount in zip(ids, large, strict=True)),
            *(f"REPLACE INTO sale VALUES ({i}, {amount})" for i, amount in zip(ids, small, strict=True)),
            f"DELETE FROM sale WHERE id = {ids[0]}",
        ],
        [
            f"DELETE FROM sale WHERE amount > {sorted(large)[1]}",
            f"UPDATE sale SET amount = amount / 2 WHERE id = {ids[1]}",
            f"UPDATE sale SET id = {ids[2]} WHERE id = {ids[1]}",
            "DELETE FROM sale",
        ],
        f"SELECT 1 WHERE (SELECT total(amount) FROM sale) >= {sum(sorted(large)[:2]) - int(rng.integers(1, 5))}",
    )


def swapped(rng: Rng) -> Program:
    """A row has reached a UNIQUE position that another one held and had to leave first."""
    a, b, goal, first, *ways = _numbers(rng, 4 + _pairs(rng))
    move = "UPDATE place SET pos = {} WHERE item = {}"
    return _program(
        rng,
        "swapped",
        [
            "CREATE TABLE place (item INTEGER PRIMARY KEY, pos INTEGER UNIQUE)",
            f"INSERT INTO place VALUES ({a}, {first}), ({b}, {goal})",
        ],
        [
            *(move.format(way, a) for way in ways),
            *(f"{move.format(goal, a)} AND pos = {way}" for way in ways),
            move.format(ways[0], b),
            move.format(ways[1], b),
            move.format(goal, b),
        ],
        [move.format(first, a), f"DELETE FROM place WHERE pos = {ways[0]}"],
        f"SELECT 1 FROM place WHERE item = {a} AND pos = {goal}",
    )


def survived(rng: Rng) -> Program:
    """A row is there because what would have deleted it came before it, or deletes others."""
    key, *tags = _numbers(rng, 1 + _pairs(rng))
    return _program(
        rng,
        "survived",
        ["CREATE TABLE queue (id INTEGER PRIMARY KEY, tag INTEGER)"],
        [
            *(f"INSERT INTO queue VALUES ({key}, {tag})" for tag in tags),
            *(f"DELETE FROM queue WHERE tag = {tag}" for tag in tags),
        ],
        [
            f"UPDATE queue SET tag = {tags[1]} WHERE tag = {tags[0]}",
            f"DELETE FROM queue WHERE tag <> {tags[2]}",
            f"REPLACE INTO queue VALUES ({key}, {tags[1]})",
        ],
        f"SELECT 1 FROM queue WHERE id = {key}",
    )


def rotated(rng: Rng) -> Program:
    """A row is in the table that a log was renamed to; tables come and go, and without one a statement fails."""
    keys = _numbers(rng, 3)
    return _program(
        rng,
        "rotated",
        ["CREATE TABLE log (id INTEGER)"],
        [
            *(f"INSERT INTO log VALUES ({key})" for key in keys),
            *(f"DELETE FROM log WHERE id = {key}" for key in keys),
            "ALTER TABLE log RENAME TO archive",
            "CREATE TABLE log (id INTEGER)",
        ],
        [
            "DROP TABLE archive",
            "ALTER TABLE archive RENAME TO log",
            f"DELETE FROM archive WHERE id <> {keys[0]}",
            "DROP TABLE log",
        ],
        "SELECT 1 FROM archive",
    )


def _pairs(rng: Rng) -> int:
    return int(rng.integers(3, 5))


def _program(
    rng: Rng,
    kind: str,
    setup: Sequence[str],
    always: Sequence[str],
    optional: Sequence[str],
    fact: str,
    *,
    by: str = "",
    control: bool = True,
) -> Program:
    chosen = [text for text in optional if rng.random() < OPTIONAL]
    style = int(rng.integers(3))
    block = BLOCKS[style] if control and style < len(BLOCKS) else ()
    schema = ("CREATE TABLE visits (id INTEGER PRIMARY KEY, n INTEGER)", *setup)
    return Program(kind, schema, (*always, *chosen, *block), fact, _unrelated(rng), by)


def _unrelated(rng: Rng) -> tuple[str, ...]:
    keys = _numbers(rng, int(rng.integers(2, 4)))
    written = [
        text
        for key in keys
        for text in (
            f"INSERT INTO visits VALUES ({key}, {_numbers(rng, 1)[0]})",
            f"UPDATE visits SET n = n + 1 WHERE id = {key}",
            f"DELETE FROM visits WHERE id = {key}",
        )
    ]
    return (*written, "SELECT sum(n) FROM visits")


def _numbers(rng: Rng, count: int, low: int = 1, high: int = 99) -> list[int]:
    """Different whole numbers from low to high, both included."""
    return [int(n) for n in rng.permutation(np.arange(low, high + 1))[:count]]


FACTS: tuple[Callable[[Rng], Program], ...] = (
    overwritten,
    rolled_back,
    checked,
    refused,
    triggered,
    joined,
    cascaded,
    upserted,
    summed,
    swapped,
    survived,
    rotated,
)
