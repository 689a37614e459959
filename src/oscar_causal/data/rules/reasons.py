"""Why a rule held in a sequence: which present events made it true, and which could not have been missed.

For one sequence let P be the set of event types present, and f(T) the rule's value when only the occurrences of the
types T of P remain (absent events stay absent). A set S is *sufficient* when f(T) is true for every T between S and P:
S carries the rule whatever the other present events do. The causes are the events of the minimal sufficient sets; an
event is *necessary* when f(P without it) is false. Let h(S) say that S is sufficient: h never falls as S grows, so an
event lies in some minimal set exactly when h depends on it.

An atom (presence, chain, count) that held in the sequence holds under T exactly when T has all its events; one that did
not hold never does. With each name once in the rule, walking the satisfied branches therefore gives the answer; only
rules that repeat a name need the decision diagram.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from oscar_causal.data.rules.diagram import FALSE, Diagram, TooEntangled
from oscar_causal.data.rules.index import EventIndex, Rows
from oscar_causal.data.rules.tree import And, Atom, Not, Or, Rule, Then, atom_names, atoms, chain_steps, event_names
from oscar_causal.errors import DataError

Role = Literal["cause", "blocker"]
Verdict = tuple[str, Role, bool, tuple[int, ...]]
"""Event, role, necessary, and the numbers of the atoms through which it takes part."""
_Occurrences: TypeAlias = tuple[list[int], list[int], list[int]]
"""Positions of all occurrences, and for each chosen sequence where its own begin and end among them."""
Walk: TypeAlias = "int | tuple[bool, tuple[Walk, ...]]"
"""A rule with NOTs pushed to the atoms: k = atom k, ~k = not atom k, (is it a conjunction, items)."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One present event and its part in a rule that held."""

    event: str
    positions: tuple[int, ...]
    """The occurrences that can take part, 0-based in the sequence, rising. In a chain: those in some complete chain."""
    role: Role
    """`cause`: in some minimal sufficient set. `blocker`: the rule only negates it, and held all the same."""
    necessary: bool
    """Without this event type the rule would not have held."""


def reasons(rule: Rule, index: EventIndex, rows: npt.ArrayLike) -> list[list[Reason]]:
    """For each of the chosen sequences, why the rule held there (nothing where it did not hold), in the rule's order.

    >>> from oscar_causal.data.rules import parse
    >>> index = EventIndex(np.array([0, 4]), np.array([0, 2, 1, 0]), None, {"A": 0, "B": 1, "C": 2})
    >>> [(r.event, r.positions, r.necessary) for r in reasons(parse("A & (B | C) & !D"), index, [0])[0]]
    [('A', (0, 3), True), ('B', (2,), False), ('C', (1,), False)]
    """
    chosen = np.asarray(rows, dtype=np.int64)
    plan = _plan(rule)
    held = np.stack([index.holds(atom)[chosen] for atom in plan.atoms], axis=1)  # (rows, atoms)
    places = _Places(plan.atoms, index, chosen)
    known: dict[bytes, list[Verdict]] = {}
    answers = []
    for number, truth in enumerate(held):
        key = truth.tobytes()
        if key not in known:
            known[key] = list(_verdicts(plan, truth.tolist()))
        answers.append([Reason(name, places.of(name, via, number), role, need) for name, role, need, via in known[key]])
    return answers


@dataclass(frozen=True, slots=True)
class _Plan:
    """A rule prepared for many sequences."""

    rule: Rule
    atoms: tuple[Atom, ...]
    numbers: dict[Atom, int]
    walk: Walk
    names: tuple[str, ...]
    names_of: tuple[frozenset[str], ...]
    """The names of each atom."""
    atoms_of: dict[str, tuple[int, ...]]
    """The atoms of each name."""
    positive_atoms: frozenset[int]
    negated: frozenset[str]
    only_negated: frozenset[str]
    once: bool
    """No name occurs in two places of the rule (a chain is one place, even if it repeats a name)."""


@lru_cache(maxsize=4096)
def _plan(rule: Rule) -> _Plan:
    listed = list(atoms(rule))
    numbers = {atom: number for number, atom in enumerate(dict.fromkeys(atom for atom, _ in listed))}
    names_of = tuple(frozenset(atom_names(atom)) for atom in numbers)
    positive = frozenset().union(*(names_of[numbers[atom]] for atom, sign in listed if sign))
    negative = frozenset().union(*(names_of[numbers[atom]] for atom, sign in listed if not sign))
    names = event_names(rule)
    atoms_of: dict[str, tuple[int, ...]] = {name: () for name in names}
    for number, members in enumerate(names_of):
        for name in members:
            atoms_of[name] += (number,)
    return _Plan(
        rule=rule,
        atoms=tuple(numbers),
        numbers=numbers,
        walk=_walk(rule, True, numbers),
        names=names,
        names_of=names_of,
        atoms_of=atoms_of,
        positive_atoms=frozenset(numbers[atom] for atom, sign in listed if sign),
        negated=negative,
        only_negated=negative - positive,
        once=sum(len(names_of[numbers[atom]]) for atom, _ in listed) == len(names),
    )


def _walk(rule: Rule, positive: bool, numbers: dict[Atom, int]) -> Walk:
    match rule:
        case Not(item):
            return _walk(item, not positive, numbers)
        case And(items) | Or(items):
            return isinstance(rule, And) is positive, tuple(_walk(item, positive, numbers) for item in items)
        case _:
            return numbers[rule] if positive else ~numbers[rule]


def _verdicts(plan: _Plan, held: Sequence[bool]) -> Iterator[Verdict]:
    """Causes and blockers for one pattern of held atoms, in the order of the rule's names."""
    live = _live(plan.walk, held)
    if live is None:
        return
    if plan.once:
        needed = {name: need for atom, need in live for name in plan.names_of[atom]}
    else:
        needed = _needed_by_diagram(plan, held)
    live_atoms = {atom for atom, _ in live}
    for name in plan.names:
        through = [atom for atom in plan.atoms_of[name] if held[atom]]
        if name in needed:
            through = [atom for atom in through if atom in plan.positive_atoms]
            via = [atom for atom in through if atom in live_atoms] or through
            yield name, "cause", needed[name], tuple(via)
        elif name in plan.only_negated and through:
            yield name, "blocker", False, tuple(through)


def _live(walk: Walk, held: Sequence[bool]) -> list[tuple[int, bool]] | None:
    """The held positive atoms of the satisfied branches, each with whether it is needed; None = not satisfied.

    An empty list means satisfied whatever is removed: absences alone suffice.
    """
    if isinstance(walk, int):
        if walk < 0:
            return None if held[~walk] else []
        return [(walk, True)] if held[walk] else None
    conjunction, items = walk
    parts = [part for item in items if (part := _live(item, held)) is not None]
    if conjunction:
        return [pair for part in parts for pair in part] if len(parts) == len(items) else None
    if len(parts) <= 1:
        return parts[0] if parts else None
    if not all(parts):
        return []
    return [(atom, False) for part in parts for atom, _ in part]


def _needed_by_diagram(plan: _Plan, held: Sequence[bool]) -> dict[str, bool]:
    """Each cause and whether it is necessary, for rules that repeat names."""
    variable = {name: number for number, name in enumerate(plan.names)}
    diagram = Diagram()

    def leaf(atom: Atom) -> int:
        number = plan.numbers[atom]
        if not held[number]:
            return FALSE
        return diagram.all_of(diagram.variable(variable[name]) for name in plan.names_of[number])

    try:
        rule_holds = sufficient = diagram.build(plan.rule, leaf)
        for name in plan.negated:  # a set suffices only if it does whether or not this one is there too
            number = variable[name]
            without, with_it = (diagram.fix(sufficient, number, value) for value in (False, True))
            both = diagram.all_of([without, with_it])
            sufficient = diagram.choose(diagram.variable(number), with_it, both)
    except TooEntangled as error:
        raise DataError(
            f"rule: expected one whose reasons can be worked out, got a too entangled one ({error})"
        ) from error
    causes = diagram.variables(sufficient)
    return {name: _needs(diagram, rule_holds, number) for name, number in variable.items() if number in causes}


def _needs(diagram: Diagram, function: int, variable: int) -> bool:
    """Whether the function is false where only this variable is."""
    return not diagram.at(function, lambda other: other != variable)


class _Places:
    """The positions of events in the chosen sequences, looked up once per atom."""

    def __init__(self, all_atoms: Sequence[Atom], index: EventIndex, chosen: Rows) -> None:
        self._atoms = all_atoms
        self._index = index
        self._bounds = index.offsets[chosen], index.offsets[chosen + 1]
        self._known: dict[int, dict[str, _Occurrences]] = {}

    def of(self, name: str, via: tuple[int, ...], number: int) -> tuple[int, ...]:
        """The positions at which the event takes part in the atoms `via`, in the chosen sequence `number`."""
        found: list[list[int]] = []
        for atom in via:
            if atom not in self._known:
                self._known[atom] = self._occurrences(self._atoms[atom])
            positions, starts, ends = self._known[atom][name]
            found.append(positions[starts[number] : ends[number]])
        return tuple(found[0]) if len(found) == 1 else tuple(sorted(set().union(*found)))

    def _occurrences(self, atom: Atom) -> dict[str, _Occurrences]:
        index, answer = self._index, {}
        for name, rows in _taking_part(atom, index).items():
            positions = rows - index.offsets[index.sequence_of[rows]]
            starts, ends = (np.searchsorted(rows, bound).tolist() for bound in self._bounds)
            answer[name] = positions.tolist(), starts, ends
        return answer


def _taking_part(atom: Atom, index: EventIndex) -> dict[str, Rows]:
    """Per event of the atom, the rows that can take part in making it hold."""
    if not isinstance(atom, Then):
        return {name: index.rows_of(name) for name in atom_names(atom)}
    answer: dict[str, Rows] = {}
    for name, rows in zip(chain_steps(atom)[0], index.rows_by_step(atom), strict=True):
        answer[name] = np.union1d(answer[name], rows) if name in answer else rows
    return answer
