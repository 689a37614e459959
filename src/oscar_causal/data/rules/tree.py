"""The syntax tree of a rule and its canonical text.

A rule says when a label comes: `A & (B | C) & !D`, `A then B within 3600s`, `A >= 3`. Trees are immutable, hashable and
compared by structure; the constructors flatten nested conjunctions, disjunctions and chains, so that a tree and its
canonical text are two forms of the same thing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from oscar_causal.errors import DataError

MAX_DEPTH = 200
"""Deepest tree that is accepted; deeper ones are a DataError, never a RecursionError."""

KEYWORDS = ("then", "within")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Event:
    """The event occurs at least once."""

    name: str
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DataError(f"rule: expected an event name (text), got {type(self.name).__name__}")
        if not self.name.isascii():
            try:
                self.name.encode("utf-8")
            except UnicodeEncodeError as error:
                raise DataError(f"expected a name that UTF-8 can hold, got {_short(ascii(self.name))}") from error


@dataclass(frozen=True, slots=True)
class Not:
    """The item does not hold."""

    item: Rule
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_depth(self, (self.item,))


@dataclass(frozen=True, slots=True)
class And:
    """Every item holds. Two items at least; a conjunction among the items is taken apart into its own items."""

    items: tuple[Rule, ...]
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", _flat(And, self.items))
        _set_depth(self, self.items)


@dataclass(frozen=True, slots=True)
class Or:
    """Some item holds. Two items at least; a disjunction among the items is taken apart into its own items."""

    items: tuple[Rule, ...]
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", _flat(Or, self.items))
        _set_depth(self, self.items)


@dataclass(frozen=True, slots=True)
class Then:
    """Some occurrence that completes `first` lies at a strictly earlier time than some occurrence of `second`.

    With `within` (seconds) the two lie at most that far apart: 0 < later - earlier <= within. Chains lean to the left:
    `Then(a, Then(b, c, v), w)` means the same as `Then(Then(a, b, w), c, v)` and becomes it.
    """

    first: Event | Then
    second: Event
    within: float | None = None
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for operand in (self.first, self.second):
            if not isinstance(operand, Event | Then):
                raise DataError(f"expected an event beside 'then', got {kind_of(operand)}")
        if self.within is not None:
            object.__setattr__(self, "within", _window(self.within))
        second: Event | Then = self.second
        if isinstance(second, Then):
            object.__setattr__(self, "first", Then(self.first, second.first, self.within))  # type: ignore[arg-type]
            object.__setattr__(self, "second", second.second)
            object.__setattr__(self, "within", second.within)
        _set_depth(self, (self.first, self.second))


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The event occurs at least `count` times."""

    event: Event
    count: int
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise DataError(f"expected an event before '>=', got {kind_of(self.event)}")
        if not isinstance(self.count, int) or isinstance(self.count, bool) or self.count < 1:
            raise DataError(f"expected a whole number of at least 1 after '>=', got {self.count!r}")


Rule: TypeAlias = Event | Not | And | Or | Then | AtLeast
Atom: TypeAlias = Event | Then | AtLeast


def all_of(items: Iterable[Rule]) -> Rule:
    """The conjunction of the items; a single item stands for itself.

    >>> format_rule(all_of([Event("A"), Not(Event("B"))]))
    'A & !B'
    """
    items = tuple(items)
    return items[0] if len(items) == 1 else And(items)


def any_of(items: Iterable[Rule]) -> Rule:
    """The disjunction of the items; a single item stands for itself."""
    items = tuple(items)
    return items[0] if len(items) == 1 else Or(items)


def format_rule(rule: Rule) -> str:
    """Canonical text: every operand that is more than an event or a negation stands in parentheses, times in seconds.

    `parse(format_rule(rule)) == rule` for every rule.

    >>> format_rule(And((Event("A"), Or((Event("B"), Event("U0126-00"))), Not(Event("D")))))
    'A & (B | "U0126-00") & !D'
    """
    match rule:
        case Event(name):
            return format_name(name)
        case Not(item):
            return "!" + _operand(item)
        case And(items):
            return " & ".join(map(_operand, items))
        case Or(items):
            return " | ".join(map(_operand, items))
        case AtLeast(event, count):
            return f"{format_name(event.name)} >= {count}"
        case Then(first, second, within):
            window = "" if within is None else f" within {_seconds(within)}s"
            return f"{format_rule(first)} then {format_name(second.name)}{window}"
    raise DataError(f"expected a rule, got {kind_of(rule)}")


def format_name(name: str) -> str:
    """An event name as rules write it: bare when it is an identifier and no keyword, else JSON-quoted."""
    return name if is_bare(name) else json.dumps(name, ensure_ascii=False)


def is_bare(word: str) -> bool:
    """Whether a name needs no quotes in a rule."""
    return word not in KEYWORDS and word.isidentifier() and _WORD.fullmatch(word) is not None


def atoms(rule: Rule) -> Iterator[tuple[Atom, bool]]:
    """Every event, chain and count of the rule from left to right, each with its polarity (False = under a NOT)."""
    stack: list[tuple[Rule, bool]] = [(rule, True)]
    while stack:
        node, positive = stack.pop()
        match node:
            case Not(item):
                stack.append((item, not positive))
            case And(items) | Or(items):
                stack.extend((item, positive) for item in reversed(items))
            case _:
                yield node, positive


def atom_names(atom: Atom) -> tuple[str, ...]:
    """The names of one atom in order; a chain that uses a name twice gives it twice."""
    return (atom.event.name,) if isinstance(atom, AtLeast) else chain_steps(atom)[0]


def chain_steps(chain: Event | Then) -> tuple[tuple[str, ...], tuple[float | None, ...]]:
    """The names of a chain from first to last, and the window between each and the next."""
    names, windows = [], []
    while isinstance(chain, Then):
        names.append(chain.second.name)
        windows.append(chain.within)
        chain = chain.first
    return (chain.name, *reversed(names)), tuple(reversed(windows))


def event_names(rule: Rule) -> tuple[str, ...]:
    """All event names of the rule, in order of first appearance.

    >>> event_names(And((Event("B"), Not(Event("A")), Event("B"))))
    ('B', 'A')
    """
    return tuple(dict.fromkeys(name for atom, _ in atoms(rule) for name in atom_names(atom)))


def positive_names(rule: Rule) -> tuple[str, ...]:
    """The names that stand under an even number of NOTs somewhere, in order of first such appearance."""
    return tuple(dict.fromkeys(name for atom, positive in atoms(rule) if positive for name in atom_names(atom)))


def negated_names(rule: Rule) -> tuple[str, ...]:
    """The names that stand under an odd number of NOTs somewhere (a name can be positive elsewhere too)."""
    return tuple(dict.fromkeys(name for atom, positive in atoms(rule) if not positive for name in atom_names(atom)))


def kind_of(value: object) -> str:
    """What a value is, in the words of error messages."""
    kinds = {Not: "a negation", And: "a conjunction", Or: "a disjunction", AtLeast: "a count", Then: "a chain"}
    return kinds.get(type(value), type(value).__name__)


def _operand(rule: Rule) -> str:
    return format_rule(rule) if isinstance(rule, Event | Not) else f"({format_rule(rule)})"


def _flat(kind: type[And] | type[Or], items: Iterable[Rule]) -> tuple[Rule, ...]:
    flat: list[Rule] = []
    for item in items:
        flat.extend(item.items if isinstance(item, kind) else (item,))
    if len(flat) < 2:
        raise DataError(f"expected at least two items to join with '{'&' if kind is And else '|'}', got {len(flat)}")
    return tuple(flat)


def _set_depth(node: Rule, items: tuple[Rule, ...]) -> None:
    for item in items:
        if not isinstance(item, Rule):
            raise DataError(f"expected a rule inside {type(node).__name__}, got {kind_of(item)}")
    depth = 1 + max(item.depth for item in items)
    if depth > MAX_DEPTH:
        raise DataError(f"expected a rule of at most {MAX_DEPTH} nested levels, got more")
    object.__setattr__(node, "depth", depth)


def _window(within: float) -> float:
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 < within < math.inf:
        raise DataError(f"expected a time window above zero seconds and finite, got {within!r}")
    return float(within)


def _seconds(within: float) -> str:
    return repr(within).removesuffix(".0")


def _short(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
