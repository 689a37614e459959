"""The shortest rule that means the same: minimal up to 8 atoms, irredundant beyond.

Chains and counts are opaque atoms here and are never taken apart; a chain counts for as many literals as it has steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from oscar_causal.data.rules.diagram import Diagram, TooEntangled
from oscar_causal.data.rules.logic import distinct_atoms, negation_normal
from oscar_causal.data.rules.minimise import MAX_VARIABLES, Formula, Minimiser
from oscar_causal.data.rules.tree import And, Atom, Not, Or, Rule, all_of, any_of, atom_names, atoms, format_rule
from oscar_causal.errors import DataError


def shortest(rule: Rule) -> Rule:
    """A rule that holds in the same sequences and has the fewest event names, never more than the given one.

    Up to 8 distinct atoms: no sum of products and no product of sums is shorter; when a form exists that uses each atom
    once (as most written rules do) that form is found, which no formula can beat. Always: no part can be dropped
    without changing the meaning, and shortening twice changes nothing. A rule that always (never) holds becomes
    `A | !A` (`A & !A`).

    >>> from oscar_causal.data.rules import parse
    >>> format_rule(shortest(parse("(A & B) | (A & C) | (A & B & D)")))
    'A & (B | C)'
    """
    while True:  # the last look finds nothing shorter and nothing to drop
        found = _shorten(negation_normal(rule))
        if isinstance(found, bool):
            atom = min(distinct_atoms([rule]), key=literal_count)
            found = Or((atom, Not(atom))) if found else And((atom, Not(atom)))
        if _length(found) >= _length(rule):
            return rule
        rule = found


def literal_count(rule: Rule) -> int:
    """How many event names a rule spells out, repeats included: the length that `shortest` minimises.

    >>> from oscar_causal.data.rules import parse
    >>> literal_count(parse("A & (B then C) & !A"))
    4
    """
    return sum(len(atom_names(atom)) for atom, _ in atoms(rule))


def _length(rule: Rule) -> tuple[int, int]:
    return literal_count(rule), len(format_rule(rule))


def _shorten(rule: Rule) -> Rule | bool:
    """A shorter form of a rule in negation normal form; True or False when it is constant."""
    variables = distinct_atoms([rule])
    if len(variables) <= MAX_VARIABLES or not isinstance(rule, And | Or):
        return _by_table(rule, variables)
    parts: list[Rule | bool] = []
    for group in _groups(rule.items):
        small = len(distinct_atoms(group)) <= MAX_VARIABLES
        parts += [_shorten(_rejoin(rule, group))] if small or len(group) == 1 else [_shorten_entangled(rule, group)]
    return _fold(rule, parts)


def _shorten_entangled(parent: And | Or, group: list[Rule]) -> Rule | bool:
    """Many atoms that cannot be told apart: shorten each item, drop what the others make superfluous, factor."""
    whole = _rejoin(parent, group)
    form = _fold(parent, [_shorten(item) for item in group])
    if isinstance(form, bool):
        return form
    try:
        form = _prune(form, whole)
    except TooEntangled as error:
        raise DataError(f"rule: expected one that can be shortened, got a too entangled one ({error})") from error
    if isinstance(form, bool):
        return form
    form = _take_out(form)
    return form if literal_count(form) == literal_count(whole) else _shorten(form)


def _take_out(rule: Rule) -> Rule:
    """`(A & B) | (A & C) | D` as `(A & (B | C)) | D`, for the part that saves most; also with & and | swapped."""
    if not isinstance(rule, And | Or):
        return rule
    other: type[And] | type[Or] = Or if isinstance(rule, And) else And
    inside = [item.items if isinstance(item, other) else (item,) for item in rule.items]
    counts = Counter(part for parts in inside for part in dict.fromkeys(parts))
    common = max(counts, key=lambda part: (counts[part] - 1) * literal_count(part))
    holding = [place for place, parts in enumerate(inside) if common in parts]
    rests = [tuple(part for part in inside[place] if part != common) for place in holding]
    if len(holding) < 2 or not all(rests):
        return rule
    factored = other((common, _rejoin(rule, [rest[0] if len(rest) == 1 else other(rest) for rest in rests])))
    apart = [
        factored if place == holding[0] else item for place, item in enumerate(rule.items) if place not in holding[1:]
    ]
    return _rejoin(rule, apart)


def _groups(items: tuple[Rule, ...]) -> list[list[Rule]]:
    """Items that share atoms, directly or through others, belong together; in order of first appearance."""
    groups: list[tuple[set[Atom], list[int]]] = []
    for place, item in enumerate(items):
        mine, members, apart = set(distinct_atoms([item])), [place], []
        for theirs, others in groups:
            if mine.isdisjoint(theirs):
                apart.append((theirs, others))
            else:
                mine, members = mine | theirs, others + members
        groups = [*apart, (mine, sorted(members))]
    return [[items[place] for place in members] for members in sorted(members for _, members in groups)]


def _rejoin(parent: And | Or, items: list[Rule]) -> Rule:
    return all_of(items) if isinstance(parent, And) else any_of(items)


def _fold(parent: And | Or, parts: list[Rule | bool]) -> Rule | bool:
    """Join parts that may have turned constant."""
    absorbing = isinstance(parent, Or)
    if any(part is absorbing for part in parts):
        return absorbing
    rules = [part for part in parts if not isinstance(part, bool)]
    return _rejoin(parent, rules) if rules else not absorbing


def _by_table(rule: Rule, variables: list[Atom]) -> Rule | bool:
    minimiser = Minimiser([len(atom_names(atom)) for atom in variables])
    table = _table(rule, dict(zip(variables, minimiser.tables, strict=True)), minimiser.full)
    if table in (0, minimiser.full):
        return table != 0
    found = _rule(minimiser.shortest(table), variables)
    return found if literal_count(found) < literal_count(rule) else _prune(rule, rule)


def _table(rule: Rule, tables: dict[Atom, int], full: int) -> int:
    match rule:
        case Not(item):
            return full & ~_table(item, tables, full)
        case And(items):
            table = full
            for item in items:
                table &= _table(item, tables, full)
            return table
        case Or(items):
            table = 0
            for item in items:
                table |= _table(item, tables, full)
            return table
        case _:
            return tables[rule]


def _rule(formula: Formula, variables: list[Atom]) -> Rule:
    if isinstance(formula, int):
        return variables[formula] if formula >= 0 else Not(variables[~formula])
    operator, items = formula
    return (And if operator == "&" else Or)(tuple(_rule(item, variables) for item in items))


def _prune(rule: Rule, truth: Rule) -> Rule | bool:
    """Drop items one by one as long as the rule keeps the meaning of `truth`."""
    diagram = Diagram()
    number = {atom: place for place, atom in enumerate(distinct_atoms([truth]))}
    goal = diagram.build(truth, lambda atom: diagram.variable(number[atom]))
    if not diagram.variables(goal):
        return goal != 0
    tried = 0
    while True:
        for place, candidate in enumerate(_without_one(rule)):
            if place >= tried and diagram.build(candidate, lambda atom: diagram.variable(number[atom])) == goal:
                rule, tried = candidate, place
                break
        else:
            if tried == 0:
                return rule
            tried = 0  # a later drop may have made an earlier one possible


def _without_one(rule: Rule) -> Iterator[Rule]:
    """The rule without one item of a conjunction or disjunction, for each in turn, the larger before its own parts."""
    if not isinstance(rule, And | Or):
        return
    for place, item in enumerate(rule.items):
        before, after = rule.items[:place], rule.items[place + 1 :]
        yield _rejoin(rule, [*before, *after])
        for smaller in _without_one(item):
            yield _rejoin(rule, [*before, smaller, *after])
