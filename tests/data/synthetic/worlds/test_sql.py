"""Replays against the same statements run on files, and reasons against the definition taken literally."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from functools import cache
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.synthetic.worlds import write
from oscar_causal.data.synthetic.worlds.reasons import DELTA
from oscar_causal.data.synthetic.worlds.sql import SqlWorld, draw_sql, explain_sql, make_sql_world
from oscar_causal.data.synthetic.worlds.sql_facts import FACTS, Program
from oscar_causal.data.synthetic.worlds.sql_scripts import Database, Fact, Script, make_fact, plant_script
from oscar_causal.data.synthetic.worlds.truth import Explained, audit
from oscar_causal.data.synthetic.worlds.world import Drawn
from oscar_causal.data.synthetic.worlds.write import write_world
from oscar_causal.errors import UsageError

SEED = 5


@cache
def world() -> SqlWorld:
    return make_sql_world(SEED)


@cache
def drawn() -> tuple[Drawn, list[Explained]]:
    sequences = draw_sql(world(), 60, "test")
    return sequences, explain_sql(world(), sequences)


def draft(kind: str) -> Program:
    """The program of this kind, with constants of a fixed seed."""
    programs = (function(np.random.default_rng(SEED)) for function in FACTS)
    return next(program for program in programs if program.kind == kind)


def pairs_of(program: Program) -> int:
    """How many statements there are like the first one."""
    shapes = [re.sub(r"\d+", "#", text) for text in program.statements]
    return shapes.index(next(shape for shape in shapes if shape != shapes[0]))


def on_file(path: Path, program: Program, statements: Iterable[str]) -> bool:
    """The fact, as another process would find it after the writer has gone."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        for text in ("PRAGMA foreign_keys = ON", "PRAGMA synchronous = OFF", *program.setup):
            writer.execute(text)
        for text in statements:
            try:
                writer.execute(text).fetchall()
            except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
                if "syntax" in str(error):
                    raise
    with closing(sqlite3.connect(path)) as reader:
        try:
            return reader.execute(program.fact).fetchone() is not None
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return False


def test_there_are_twelve_kinds_of_facts_and_none_holds_at_first() -> None:
    programs = [function(np.random.default_rng(1)) for function in FACTS]
    assert len({program.kind for program in programs}) == 12
    assert not any(Database(program).holds(()) for program in programs)


@pytest.mark.parametrize("kind", ["overwritten", "checked", "triggered", "cascaded", "upserted", "refused"])
def test_two_statements_lead_to_the_fact_in_one_order_only(kind: str) -> None:
    runs = Database(draft(kind))
    second = pairs_of(runs.program)
    assert second >= 3
    for first in range(second):
        assert runs.holds((first, second + first))
        assert not runs.holds((first,))
        assert not runs.holds((second + first,))
        assert not runs.holds((second + first, first))


@pytest.mark.parametrize(("kind", "still"), [("overwritten", False), ("checked", True), ("upserted", True)])
def test_what_comes_between_or_after(kind: str, still: bool) -> None:
    """The last write counts, except where CHECK or an existing row refuses it."""
    runs = Database(draft(kind))
    second = pairs_of(runs.program)
    assert runs.holds((0, second, 1)) is still
    assert runs.holds((0, 1, second)) is (kind == "upserted")


def test_a_cascade_needs_the_child_under_the_parent_that_goes() -> None:
    runs = Database(draft("cascaded"))
    second = pairs_of(runs.program)
    assert not runs.holds((0, 1, second))  # moved on before the parent went
    assert runs.run((second, 0)).effective == (True, False)  # no child under a parent that is gone
    assert not runs.holds((0, second, 2 * second))  # the child was written again


def test_rollback_brings_a_state_back_and_the_end_loses_what_is_open() -> None:
    runs = Database(draft("rolled back"))
    number = {text.split(" s")[0] if "SET" not in text else text: i for i, text in enumerate(runs.program.statements)}
    begin, undo = next(
        (number[a], number[b]) for a, b in (("BEGIN", "ROLLBACK"), ("SAVEPOINT", "ROLLBACK TO")) if a in number
    )
    reach = next(i for i, text in enumerate(runs.program.statements) if "WHERE state" in text and runs.holds((i,)))
    leave = next(i for i, text in enumerate(runs.program.statements) if "SET" in text and not runs.holds((reach, i)))
    assert runs.holds((reach, begin, leave, undo))
    assert not runs.holds((reach, leave, begin, undo))
    assert not runs.holds((reach, leave, undo))
    assert runs.holds((reach, begin, leave))  # never committed
    assert not runs.holds((begin, reach))


def test_a_sum_and_a_queue() -> None:
    program = draft("survived")
    runs, second = Database(program), pairs_of(program)
    assert runs.holds((second, 0))
    assert not runs.holds((0, second))
    assert runs.holds((0, second + 1))
    runs = Database(draft("summed"))
    assert runs.holds((0, 1, 5))  # a small amount in another row does not hurt ...
    assert runs.holds((3, 0, 1))  # ... nor where a large one replaced it
    assert not runs.holds((0, 1, 3))  # but it does in the place of a large one
    assert not runs.holds((0,))


@pytest.mark.parametrize("draft_of", FACTS, ids=lambda function: function.__name__)
def test_replays_agree_with_databases_on_disk(draft_of: object, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    runs = Database(draft_of(rng))  # type: ignore[operator]
    statements = runs.program.statements
    for _ in range(12):
        script = tuple(rng.integers(len(statements), size=8).tolist())
        assert runs.holds(script) == on_file(tmp_path / "db", runs.program, (statements[i] for i in script))


def test_every_statement_does_something_somewhere() -> None:
    rng = np.random.default_rng(7)
    for fact in world().facts:
        runs, never = Database(fact.program), set(range(len(fact.program.statements)))
        for _ in range(200):
            script = tuple(rng.integers(len(fact.program.statements), size=10).tolist())
            never -= {number for number, did in zip(script, runs.run(script).effective, strict=True) if did}
        assert not never, [fact.program.statements[number] for number in never]


def test_other_databases_and_other_tables_change_nothing(tmp_path: Path) -> None:
    """The whole record on twelve files, and again without half of what a label does not depend on."""
    sequences, _ = drawn()
    names, rng = world().event_names, np.random.default_rng(9)
    probs = world().probs(sequences.recorded)
    offsets = sequences.recorded.offsets
    for row in range(10):
        events = sequences.recorded.events[offsets[row] : offsets[row + 1]]
        for y, fact in enumerate(world().facts):
            own = set(world().mechanisms[y].types)
            kept = [names[e] for e in events if e in own or rng.random() < 0.5]
            here = [name.split(": ", 1)[1] for name in kept if name.startswith(f"d{y:02d}: ")]
            holds = on_file(tmp_path / "db", fact.program, here)
            assert probs[row, y] == (fact.high if holds else fact.floor)
            assert world().probs_of([kept])[0, y] == probs[row, y]


def test_probabilities_of_changed_sequences() -> None:
    """An oracle for any sequence of names: a replaced event is another statement."""
    fact = world().facts[0]
    way = [f"d00: {fact.program.statements[number]}" for number in fact.ways[0]]
    unrelated = f"d00: {fact.program.unrelated[0]}"
    probs = world().probs_of([way, way[:-1], [*way[:-1], unrelated], [unrelated, *way, "CLOSE"], []])
    assert probs[:, 0].tolist() == [fact.high, fact.floor, fact.floor, fact.high, fact.floor]
    assert probs[:, 1:].tolist() == [[other.floor for other in world().facts[1:]]] * 5
    with pytest.raises(UsageError, match="expected a statement of this world, got 'DROP'"):
        world().probs_of([["DROP"]])


def literal_roles(fact: Fact, script: Script) -> dict[int, str]:
    """The definitions, word by word, over sets."""
    types = set(script)
    runs = Database(fact.program)

    def prob(gone: frozenset[int]) -> float:
        return fact.high if runs.holds(tuple(t for t in script if t not in gone)) else fact.floor

    sets = [frozenset(c) for c in chain.from_iterable(combinations(types, n) for n in range(len(types) + 1))]

    def matters(kind: int, sign: int) -> list[frozenset[int]]:
        blockers = {t for t in types for s in sets if t not in s and sign * (prob(s | {t}) - prob(s)) >= DELTA}
        return [
            s
            for s in sets
            if kind not in s
            and (not s or (abs(prob(s) - prob(frozenset())) <= DELTA and not s & blockers))
            and sign * (prob(s) - prob(s | {kind})) >= DELTA
        ]

    roles = {}
    for kind in types:
        causing, hindering = matters(kind, 1), matters(kind, -1)
        if frozenset() in causing or (causing and frozenset() not in hindering):
            roles[kind] = "cause"
        elif hindering:
            roles[kind] = "blocker"
    return roles


def test_reasons_by_the_definition_taken_literally() -> None:
    _, explained = drawn()
    sequences, checked = drawn()[0].recorded, 0
    for pair in explained:
        if len(pair.present) > 7:
            continue
        types = world().mechanisms[pair.label].types
        events = sequences.events[sequences.offsets[pair.row] : sequences.offsets[pair.row + 1]]
        script = tuple(types.index(event) for event in events.tolist() if event in types)
        found = {pair.present[reason.type] - types[0]: reason.role for reason in pair.reasons}
        assert found == literal_roles(world().facts[pair.label], script)
        checked += 1
    assert checked >= 10


def test_positions_stand_where_the_statement_is() -> None:
    sequences, explained = drawn()
    for pair in explained:
        begin = sequences.recorded.offsets[pair.row]
        for reason, positions in zip(pair.reasons, pair.positions, strict=True):
            assert positions
            events = sequences.recorded.events[begin + np.array(positions)]
            assert set(events.tolist()) == {pair.present[reason.type]}


def test_the_world_is_as_hard_as_asked_for() -> None:
    _, explained = drawn()
    figures = audit(explained)
    assert figures["neutral_share"] == 0
    assert figures["decoy_share"] >= 0.5
    assert figures["presence_f1"] <= 0.65
    assert max(len(pair.present) for pair in explained) <= 10
    assert all(len(fact.ways) >= 3 for fact in world().facts)
    assert 150 <= len(world().event_names) <= 300
    assert len(set(world().event_names)) == len(world().event_names)


def test_planted_scripts_hold_as_often_as_stated() -> None:
    rng = np.random.default_rng(2)
    fact = world().facts[0]
    runs = Database(fact.program)
    scripts = [plant_script(rng, fact) for _ in range(300)]
    rate = fact.involved * fact.active
    assert abs(np.mean([runs.holds(script) for script in scripts]) - rate) < 4 * np.sqrt(rate / 300)


def test_written_worlds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = write_world("sql", SEED, tmp_path / "world", train=20, test=12)
    monkeypatch.setattr(write, "make_sql_world", {SEED: world()}.get)  # made apart from the first one
    write_world("sql", SEED, tmp_path / "again", train=20, test=12)
    files = sorted(path.relative_to(tmp_path / "world") for path in (tmp_path / "world").rglob("*.parquet"))
    assert len(files) == 5
    for file in files:
        assert (tmp_path / "world" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    test = read_dataset(tmp_path / "world" / "test")
    probs = pq.read_table(tmp_path / "world" / "test" / "probabilities.parquet")
    assert probs.column_names == ["sequence_id", *world().label_names]
    assert len(test) == probs.num_rows == 12
    why = pq.read_table(tmp_path / "world" / "test" / "why").to_pylist()
    assert figures["pairs_with_cause"] == len({(r["sequence_id"], r["label"]) for r in why if r["role"] == "cause"})


def test_another_seed_is_another_program() -> None:
    texts = {make_fact(np.random.default_rng(seed), FACTS[0]).program.statements for seed in (1, 1, 2, 3)}
    assert len(texts) == 3


def test_an_unknown_world_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected one of additive, .*, sql, got 'mongo'"):
        write_world("mongo", 1, tmp_path / "world")
    assert not (tmp_path / "world").exists()
