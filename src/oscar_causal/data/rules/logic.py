"""Do two rules mean the same? And what remains of a rule when nothing that it forbids occurs?

Chains and counts are atoms of their own. What is known between atoms (a chain needs its events, three times implies
twice, a narrow window implies a wide one) is used; where that knowledge is not complete a sequence that tells the
rules apart is searched for, and the answer may be "unknown".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

from oscar_causal.data.rules.diagram import TRUE, Diagram, TooEntangled
from oscar_causal.data.rules.tree import (
    And,
    AtLeast,
    Atom,
    Event,
    Not,
    Or,
    Rule,
    Then,
    all_of,
    any_of,
    atom_names,
    atoms,
    chain_steps,
)
from oscar_causal.data.rules.witness import differ_somewhere


def equivalent(a: Rule, b: Rule) -> bool | None:
    """Whether two rules hold in exactly the same sequences (of events with times); None = unknown.

    True and False are proven, False by logic or by a sequence in which the rules differ. None is possible only when two
    different chains share an event, or when the rules are too entangled for a decision diagram.

    >>> from oscar_causal.data.rules import parse
    >>> equivalent(parse("A & (B | C)"), parse("A & B | A & C")), equivalent(parse("A | B"), parse("A"))
    (True, False)
    >>> equivalent(parse("A & (A then B)"), parse("A then B"))
    True
    >>> chain = parse("A then B within 2s then C within 2s")
    >>> print(equivalent(chain, And((chain, parse("A then C within 4s")))))
    None
    """
    variables = distinct_atoms([a, b])
    try:
        if a == b or _same_by_logic(a, b, variables):
            return True
        if _all_known(variables):
            return False
    except TooEntangled:
        pass
    return False if differ_somewhere(a, b) else None


def _same_by_logic(a: Rule, b: Rule, variables: Sequence[Atom]) -> bool:
    """Whether the rules agree in every pattern of atoms that the known implications allow."""
    diagram = Diagram()
    functions = {atom: diagram.variable(number) for number, atom in enumerate(variables)}
    first, second = (diagram.build(rule, lambda atom: functions[plain_atom(atom)]) for rule in (a, b))
    if first == second:
        return True
    telling = [atom for atom in variables if not isinstance(atom, Event)]  # an event alone entails nothing else
    known = diagram.all_of(
        diagram.choose(functions[stronger], functions[weaker], TRUE)
        for stronger in telling
        for weaker in variables
        if stronger != weaker and implies(stronger, weaker)
    )
    return diagram.all_of([known, first]) == diagram.all_of([known, second])


def positive_part(rule: Rule) -> Rule | None:
    """The rule with every negated literal taken as satisfied; None when nothing is left to demand.

    >>> from oscar_causal.data.rules import format_rule, parse
    >>> format_rule(positive_part(parse("A & (B | C) & !D")))
    'A & (B | C)'
    >>> print(positive_part(parse("A | !B")))
    None
    """
    return _positive_part(rule, True)


def negation_normal(rule: Rule, positive: bool = True) -> Rule:
    """The same rule (or its negation) with NOT only before atoms, and `A >= 1` written `A`."""
    match rule:
        case Not(item):
            return negation_normal(item, not positive)
        case And(items) | Or(items):
            parts = tuple(negation_normal(item, positive) for item in items)
            return And(parts) if isinstance(rule, And) is positive else Or(parts)
        case _:
            atom = plain_atom(rule)
            return atom if positive else Not(atom)


def plain_atom(atom: Atom) -> Atom:
    """`A >= 1` is the event itself; other atoms stay."""
    return atom.event if isinstance(atom, AtLeast) and atom.count == 1 else atom


def distinct_atoms(rules: Iterable[Rule]) -> list[Atom]:
    """The atoms of the rules in order of first appearance, `A >= 1` written `A`."""
    return list(dict.fromkeys(plain_atom(atom) for rule in rules for atom, _ in atoms(rule)))


def implies(stronger: Atom, weaker: Atom) -> bool:
    """Whether one atom always entails the other (sound; complete except between chains)."""
    if isinstance(weaker, Then):
        return isinstance(stronger, Then) and _embeds(weaker, stronger)
    name, wanted = (weaker.event.name, weaker.count) if isinstance(weaker, AtLeast) else (weaker.name, 1)
    if isinstance(stronger, AtLeast):
        return stronger.event.name == name and stronger.count >= wanted
    return Counter(atom_names(stronger))[name] >= wanted


def _embeds(weaker: Then, stronger: Then) -> bool:
    """Whether the steps of the weaker chain are found in order in the stronger, with windows at least as wide.

    A window is compared only between neighbours of the stronger chain: sums of windows are left alone.
    """
    names, windows = chain_steps(weaker)
    long_names, long_windows = chain_steps(stronger)
    reached = {place for place, name in enumerate(long_names) if name == names[0]}
    for name, within in zip(names[1:], windows, strict=True):
        reached = {
            place
            for place, found in enumerate(long_names)
            if found == name and any(_window_embeds(within, before, place, long_windows) for before in reached)
        }
    return bool(reached)


def _window_embeds(within: float | None, before: int, place: int, windows: Sequence[float | None]) -> bool:
    if before >= place or within is None:
        return before < place
    width = windows[before]
    return place == before + 1 and width is not None and width <= within


def _all_known(variables: Sequence[Atom]) -> bool:
    """Whether every pattern of atoms that the implications allow occurs in some sequence.

    It does as long as no two chains share an event: a chain fails when its events come all at one time, and counts can
    be met by repeats that change nothing.
    """
    chains = [set(atom_names(atom)) for atom in variables if isinstance(atom, Then)]
    return all(one.isdisjoint(other) for one, other in combinations(chains, 2))


def _positive_part(rule: Rule, positive: bool) -> Rule | None:
    match rule:
        case Not(item):
            return _positive_part(item, not positive)
        case And(items) | Or(items):
            parts = [_positive_part(item, positive) for item in items]
            demands = [part for part in parts if part is not None]
            if isinstance(rule, And) is positive:
                return all_of(demands) if demands else None
            return any_of(demands) if len(demands) == len(parts) else None
        case Event() | Then() | AtLeast():
            return rule if positive else None
