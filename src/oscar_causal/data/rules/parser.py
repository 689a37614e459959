"""Text to rule: one pass over the characters, errors that point at the column.

    rule     = and { "|" and }
    and      = step { "&" step }
    step     = unary ">=" whole-number  |  unary { "then" unary [ "within" number unit ] }
    unary    = { "!" } ( name | "(" rule ")" )
    name     = identifier other than `then`, `within`  |  JSON string
    unit     = s | m | min | h | d

The operands of `then` are events or chains, that of `>=` is an event. Groups live on a list of our own, so the depth of
the parentheses is bounded by memory and the depth of the tree by `MAX_DEPTH`, never by Python's stack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, TypeVar

from oscar_causal.data.rules.tree import KEYWORDS, AtLeast, Event, Not, Rule, Then, all_of, any_of, is_bare, kind_of
from oscar_causal.errors import DataError

T = TypeVar("T")

UNIT_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

_OPERAND = "an event name, '!' or '('"
_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(r"[&|!()]|>=|\w+|.", re.DOTALL)
_COUNT = re.compile(r"[0-9]+(?![\w.])")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_STRINGS = json.JSONDecoder(strict=False)


def parse(text: str) -> Rule:
    """Read a rule. A DataError tells the column (counted from 1), what was expected there and what came.

    >>> parse("A & !B") == parse('("A") & (!B)')
    True
    >>> parse("A & | B")
    Traceback (most recent call last):
    oscar_causal.errors.DataError: rule, column 5: expected an event name, '!' or '(', got '|'
    """
    if not isinstance(text, str):
        raise DataError(f"rule: expected text, got {type(text).__name__}")
    return _Parser(text).rule()


class _Token(NamedTuple):
    kind: str  # an operator or keyword, "name", "word" (neither), "end"
    text: str
    start: int
    end: int


@dataclass(slots=True)
class _Group:
    """What is known of one pair of parentheses while it is open."""

    start: int
    ors: list[Rule] = field(default_factory=list)
    ands: list[Rule] = field(default_factory=list)
    bangs: int = 0
    first: Rule | None = None
    """The left operand of a `then` whose right operand is being read."""

    def close(self, operand: Rule) -> Rule:
        return any_of([*self.ors, all_of([*self.ands, operand])])


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.token = self.read(0)
        self.groups = [_Group(0)]

    def rule(self) -> Rule:
        while True:
            operand, start = self.operand()
            while True:
                operand = self.complete(operand, start)
                if self.token.kind == "end":
                    return self.finish(operand)
                if self.token.kind != ")":
                    break
                operand, start = self.close_group(operand)
            self.join(operand)

    def operand(self) -> tuple[Rule, int]:
        """Read `!`s and opening parentheses up to the next name."""
        while True:
            token, group = self.token, self.groups[-1]
            if token.kind == "!" and group.first is None:
                group.bangs += 1
            elif token.kind == "(":
                self.groups.append(_Group(token.start))
            elif token.kind == "name":
                self.advance()
                return self.build(token.start, Event, token.text), token.start
            else:
                self.fail(_OPERAND if group.first is None else "an event after 'then'")
            self.advance()

    def complete(self, operand: Rule, start: int) -> Rule:
        """Apply what binds tighter than `&`: pending negations, `then`, `within`, `>=`."""
        group = self.groups[-1]
        for _ in range(group.bangs):
            operand = self.build(start, Not, operand)
        group.bangs = 0
        if group.first is not None:
            operand = self.chain(group.first, operand, start)
            group.first = None
        if self.token.kind == ">=":
            operand = self.count(operand, start)
        return operand

    def chain(self, first: Rule, second: Rule, start: int) -> Rule:
        within = None
        if self.token.kind == "within":
            within = self.duration()
        return self.build(start, Then, first, second, within)

    def count(self, operand: Rule, start: int) -> Rule:
        place = self.skip_space(self.token.end)
        number = _COUNT.match(self.text, place)
        if number is None or len(number.group()) > 18 or int(number.group()) < 1:
            self.fail("a whole number of at least 1 after '>='", self.read(place))
        rule = self.build(start, AtLeast, operand, int(number.group()))
        self.token = self.read(number.end())
        return rule

    def duration(self) -> float:
        place = self.skip_space(self.token.end)
        number = _NUMBER.match(self.text, place)
        if number is None:
            self.fail("a number of seconds, minutes, hours or days after 'within'", self.read(place))
        unit = self.read(number.end())
        if unit.text not in UNIT_SECONDS:
            self.fail("a unit (s, m, min, h, d) after the number", unit)
        self.token = self.read(unit.end)
        seconds = float(number.group()) * UNIT_SECONDS[unit.text]
        return self.build(place, _checked, seconds)

    def join(self, operand: Rule) -> None:
        """Put a complete operand before the operator that follows it."""
        token, group = self.token, self.groups[-1]
        if token.kind == "&":
            group.ands.append(operand)
        elif token.kind == "|":
            group.ors.append(self.build(group.start, all_of, [*group.ands, operand]))
            group.ands = []
        elif token.kind == "then":
            if not isinstance(operand, Event | Then):
                self.fail("an event before 'then' (a negated chain is !(A then B))", came=kind_of(operand))
            group.first = operand
        else:
            closing = "the end" if len(self.groups) == 1 else "')'"
            self.fail(f"'&', '|', 'then', '>=' or {closing}")
        self.advance()

    def close_group(self, operand: Rule) -> tuple[Rule, int]:
        if len(self.groups) == 1:
            self.fail("'&', '|', 'then', '>=' or the end")
        self.advance()
        group = self.groups.pop()
        return self.build(group.start, group.close, operand), group.start

    def finish(self, operand: Rule) -> Rule:
        if len(self.groups) > 1:
            self.fail(f"')' to close the '(' of column {self.groups[-1].start + 1}")
        return self.build(0, self.groups[0].close, operand)

    def advance(self) -> None:
        self.token = self.read(self.token.end)

    def skip_space(self, place: int) -> int:
        space = _SPACE.match(self.text, place)
        return space.end() if space else place

    def read(self, place: int) -> _Token:
        """The token that begins at or after `place`."""
        start = self.skip_space(place)
        if start == len(self.text):
            return _Token("end", "", start, start)
        if self.text[start] == '"':
            return self.read_quoted(start)
        found = _TOKEN.match(self.text, start)
        word = found.group() if found else self.text[start]
        kind = word if word in KEYWORDS or word in ("&", "|", "!", "(", ")", ">=") else "word"
        return _Token("name" if is_bare(word) else kind, word, start, start + len(word))

    def read_quoted(self, start: int) -> _Token:
        try:
            name, end = _STRINGS.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated"):
                raise _error(start, "a closing '\"' for the name that begins here", "the end of the rule") from error
            raise _error(error.pos, "a JSON string", error.msg) from error
        return _Token("name", name, start, end)

    def build(self, start: int, make: Callable[..., T], *parts: object) -> T:
        """Make something; what its maker refuses gets the column where it stands."""
        try:
            return make(*parts)
        except DataError as error:
            raise DataError(f"rule, column {start + 1}: {error}") from error

    def fail(self, expected: str, token: _Token | None = None, *, came: str = "") -> NoReturn:
        token = token or self.token
        hint = ""
        if token.kind == "word" and not came and token.text not in UNIT_SECONDS:
            hint = "; a name that is no identifier stands in double quotes"
        raise _error(token.start, expected, (came or _show(token)) + hint)


def _error(start: int, expected: str, came: str) -> DataError:
    return DataError(f"rule, column {start + 1}: expected {expected}, got {came}")


def _show(token: _Token) -> str:
    if token.kind == "end":
        return "the end of the rule"
    text = token.text if len(token.text) <= 40 else token.text[:37] + "..."
    return f"the name {json.dumps(text)}" if token.kind == "name" else repr(text)


def _checked(seconds: float) -> float:
    if not 0 < seconds < float("inf"):
        raise DataError(f"expected a time window above zero seconds and finite, got {seconds!r}s")
    return seconds
