"""Short formulas of Boolean functions of up to 8 variables, by truth table.

A table is an int with one bit per assignment: bit m is the function's value where variable i has bit i of m. A function
that splits into two with no variable in common (by AND or by OR) is split first, which never costs a literal, so that
functions which can use each variable once come out exactly so. What does not split is written as the cheapest sum of
products and as the cheapest product of sums (exact, by prime implicants), both are factored, and the shorter one wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Literal, TypeAlias

from oscar_causal.data.rules.cover import cheapest_cover

MAX_VARIABLES = 8
_TRY_ALL = 5  # functions of so many variables are factored by every literal in turn, larger ones by the commonest

Operator: TypeAlias = Literal["&", "|"]
Formula: TypeAlias = "int | tuple[Operator, tuple[Formula, ...]]"
"""Variable i as i, its negation as ~i, or an operator and its items."""
Cube: TypeAlias = frozenset[int]
"""A product of literals, written like the variables of a formula."""


@lru_cache(maxsize=MAX_VARIABLES + 1)
def variable_tables(count: int) -> tuple[int, ...]:
    """The tables of the variables themselves.

    >>> [bin(table) for table in variable_tables(2)]
    ['0b1010', '0b1100']
    """
    full = (1 << (1 << count)) - 1
    return tuple(full // ((1 << (1 << i)) + 1) << (1 << i) for i in range(count))


class Minimiser:
    """Finds short formulas over variables of given costs (how many literals each counts for).

    >>> Minimiser((1, 1, 1)).shortest(0b1010_1000)  # a & (b | c)
    ('&', (0, ('|', (1, 2))))
    """

    def __init__(self, costs: Sequence[int]) -> None:
        self.costs = tuple(costs)
        self.full = (1 << (1 << len(costs))) - 1
        self.tables = variable_tables(len(costs))
        self._formulas: dict[int, Formula] = {}
        self._prime_cubes: dict[int, list[Cube]] = {0: [], self.full: [frozenset()]}

    def shortest(self, table: int) -> Formula:
        """A short formula of a function that is not constant."""
        if table not in self._formulas:
            support = self._support(table)
            if len(support) == 1:
                self._formulas[table] = support[0] if table == self.tables[support[0]] else ~support[0]
            else:
                self._formulas[table] = self._split(table, support) or self._core(table)
        return self._formulas[table]

    def cost(self, formula: Formula) -> int:
        """How many literals a formula has, each counted by its variable's cost."""
        if isinstance(formula, int):
            return self.costs[max(formula, ~formula)]
        return sum(map(self.cost, formula[1]))

    def _cofactor(self, table: int, literal: int) -> int:
        """The function where the literal is true, as a table that no longer depends on its variable."""
        variable = max(literal, ~literal)
        shift, mask = 1 << variable, self.tables[variable]
        part = table & mask if literal >= 0 else table & ~mask
        return part | (part >> shift if literal >= 0 else part << shift)

    def _support(self, table: int) -> list[int]:
        return [i for i in range(len(self.costs)) if self._cofactor(table, i) != self._cofactor(table, ~i)]

    def _split(self, table: int, support: list[int]) -> Formula | None:
        """The function as AND or OR of two with no variable in common, if it is one."""
        for size in range(1, len(support) // 2 + 1):
            for block in combinations(support, size):
                rest = [variable for variable in support if variable not in block]
                one, other = self._exists(table, rest), self._exists(table, block)
                if one & other == table:
                    return join("&", (self.shortest(one), self.shortest(other)))
                one, other = self._forall(table, rest), self._forall(table, block)
                if one | other == table:
                    return join("|", (self.shortest(one), self.shortest(other)))
        return None

    def _exists(self, table: int, variables: Sequence[int]) -> int:
        for variable in variables:
            table = self._cofactor(table, variable) | self._cofactor(table, ~variable)
        return table

    def _forall(self, table: int, variables: Sequence[int]) -> int:
        for variable in variables:
            table = self._cofactor(table, variable) & self._cofactor(table, ~variable)
        return table

    def _core(self, table: int) -> Formula:
        sums = self._factor(self._cover(table))
        products = negate(self._factor(self._cover(self.full & ~table)))
        return min(sums, products, key=self.cost)

    def _cover(self, table: int) -> list[Cube]:
        """The sum of products with the fewest literals."""
        primes = self._primes(table, 0)
        costs = [sum(self.cost(literal) for literal in cube) for cube in primes]
        return [primes[i] for i in cheapest_cover(table, [self._cube_table(cube) for cube in primes], costs)]

    def _primes(self, table: int, variable: int) -> list[Cube]:
        """The prime implicants of a function that depends on no variable before `variable`."""
        if table not in self._prime_cubes:
            low, high = self._cofactor(table, ~variable), self._cofactor(table, variable)
            found = list(self._primes(low & high, variable + 1))
            for literal, here, there in ((~variable, low, high), (variable, high, low)):
                for cube in self._primes(here, variable + 1):
                    if self._cube_table(cube) & ~there:  # else it is an implicant without the literal
                        found.append(cube | {literal})
            self._prime_cubes[table] = found
        return self._prime_cubes[table]

    def _cube_table(self, cube: Cube) -> int:
        table = self.full
        for literal in cube:
            table &= self.tables[literal] if literal >= 0 else ~self.tables[~literal]
        return table

    def _table(self, cubes: Sequence[Cube]) -> int:
        table = 0
        for cube in cubes:
            table |= self._cube_table(cube)
        return table

    def _factor(self, cubes: list[Cube]) -> Formula:
        """A sum of products with common literals taken out."""
        if len(cubes) == 1:
            return join("&", sorted(cubes[0], key=_first_literal))
        candidates = [self._factor_by(cubes, literal) for literal in self._shared_literals(cubes)]
        candidates.append(join("|", [self._factor([cube]) for cube in cubes]))
        return min(candidates, key=self.cost)

    def _shared_literals(self, cubes: list[Cube]) -> Iterator[int]:
        counts = {literal: sum(literal in cube for cube in cubes) for cube in cubes for literal in cube}
        shared = [literal for literal in sorted(counts, key=_first_literal) if counts[literal] > 1]
        if len({max(literal, ~literal) for literal in counts}) <= _TRY_ALL:
            yield from shared
        elif shared:
            yield max(shared, key=lambda literal: counts[literal] * self.cost(literal))

    def _factor_by(self, cubes: list[Cube], literal: int) -> Formula:
        """literal & (what it multiplies, a function of fewer variables) | the rest."""
        inside = [cube - {literal} for cube in cubes if literal in cube]
        outside = [cube for cube in cubes if literal not in cube]
        if frozenset() in inside:
            product: Formula = literal
        else:
            product = join("&", (literal, self.shortest(self._table(inside))))
        return join("|", (product, self._factor(outside))) if outside else product


def join(operator: Operator, items: Sequence[Formula]) -> Formula:
    """Items under one operator: flat, ordered by first literal; a single item stands for itself."""
    flat: list[Formula] = []
    for item in items:
        flat.extend(item[1] if isinstance(item, tuple) and item[0] == operator else (item,))
    return flat[0] if len(flat) == 1 else (operator, tuple(sorted(flat, key=_first_literal)))


def negate(formula: Formula) -> Formula:
    """The formula of the negated function, with as many literals."""
    if isinstance(formula, int):
        return ~formula
    operator, items = formula
    return ("|" if operator == "&" else "&"), tuple(map(negate, items))


def _first_literal(formula: Formula) -> tuple[int, bool]:
    """Sorts formulas by their first variable, plain before negated."""
    if isinstance(formula, int):
        return max(formula, ~formula), formula < 0
    return min(map(_first_literal, formula[1]))
