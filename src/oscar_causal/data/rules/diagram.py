"""Reduced ordered binary decision diagrams: each Boolean function has one node, so equality is comparing two numbers.

Small and exact; they decide equivalence and dependence for rules of many events without a truth table. A rule that uses
each name once has a diagram about as long as the rule; entangled rules can explode, hence the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from oscar_causal.data.rules.tree import And, Atom, Not, Or, Rule

FALSE, TRUE = 0, 1
MAX_VARIABLES = 300
MAX_NODES = 200_000

_NO_VARIABLE = MAX_VARIABLES + 1


class TooEntangled(Exception):
    """The function does not fit a diagram of bounded size; callers say what that means to the user."""


class Diagram:
    """A shared table of nodes. Functions are node numbers; variables are numbered in the order they are tested.

    >>> d = Diagram()
    >>> a, b = d.variable(0), d.variable(1)
    >>> d.any_of([d.all_of([a, b]), d.all_of([a, d.negate(b)])]) == a
    True
    """

    def __init__(self) -> None:
        self._nodes: list[tuple[int, int, int]] = [(_NO_VARIABLE, 0, 0), (_NO_VARIABLE, 1, 1)]
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}

    def variable(self, number: int) -> int:
        """The function that is true when the variable is."""
        if number >= MAX_VARIABLES:
            raise TooEntangled(f"more than {MAX_VARIABLES} variables")
        return self._node(number, FALSE, TRUE)

    def choose(self, test: int, yes: int, no: int) -> int:
        """`yes` where `test` holds, `no` elsewhere."""
        if test <= TRUE or yes == no:
            return yes if test == TRUE or yes == no else no
        if yes == TRUE and no == FALSE:
            return test
        key = (test, yes, no)
        known = self._choices.get(key)
        if known is not None:
            return known
        variable = min(self._nodes[test][0], self._nodes[yes][0], self._nodes[no][0])
        low = self.choose(*[self._branch(function, variable, 1) for function in key])
        high = self.choose(*[self._branch(function, variable, 2) for function in key])
        answer = self._choices[key] = self._node(variable, low, high)
        return answer

    def negate(self, function: int) -> int:
        return self.choose(function, FALSE, TRUE)

    def all_of(self, functions: Iterable[int]) -> int:
        answer = TRUE
        for function in reversed(list(functions)):
            answer = self.choose(function, answer, FALSE)
        return answer

    def any_of(self, functions: Iterable[int]) -> int:
        answer = FALSE
        for function in reversed(list(functions)):
            answer = self.choose(function, TRUE, answer)
        return answer

    def build(self, rule: Rule, leaf: Callable[[Atom], int]) -> int:
        """The function of a rule whose atoms are the functions that `leaf` gives."""
        match rule:
            case Not(item):
                return self.negate(self.build(item, leaf))
            case And(items):
                return self.all_of([self.build(item, leaf) for item in items])
            case Or(items):
                return self.any_of([self.build(item, leaf) for item in items])
            case _:
                return leaf(rule)

    def fix(self, function: int, variable: int, value: bool) -> int:
        """The function with one variable set."""
        known: dict[int, int] = {}

        def go(node: int) -> int:
            top, low, high = self._nodes[node]
            if top > variable:
                return node
            if top == variable:
                return high if value else low
            if node not in known:
                known[node] = self._node(top, go(low), go(high))
            return known[node]

        return go(function)

    def at(self, function: int, value: Callable[[int], bool]) -> bool:
        """The value of the function where `value` gives that of each variable."""
        while function > TRUE:
            variable, low, high = self._nodes[function]
            function = high if value(variable) else low
        return function == TRUE

    def variables(self, function: int) -> set[int]:
        """The variables on which the function depends."""
        seen, found, stack = {FALSE, TRUE}, set(), [function]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                variable, low, high = self._nodes[node]
                found.add(variable)
                stack += (low, high)
        return found

    def _node(self, variable: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (variable, low, high)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._nodes)
            self._nodes.append(key)
            if number > MAX_NODES:
                raise TooEntangled(f"more than {MAX_NODES} nodes")
        return number

    def _branch(self, function: int, variable: int, side: int) -> int:
        node = self._nodes[function]
        return node[side] if node[0] == variable else function
