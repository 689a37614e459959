"""Short formulas against the true formula sizes of all functions of three variables, found by exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest

from oscar_causal.data.rules.minimise import Minimiser, variable_tables


def table_of(formula, count):
    full = (1 << (1 << count)) - 1
    if isinstance(formula, int):
        return variable_tables(count)[formula] if formula >= 0 else full & ~variable_tables(count)[~formula]
    operator, items = formula
    table = full if operator == "&" else 0
    for item in items:
        table = table & table_of(item, count) if operator == "&" else table | table_of(item, count)
    return table


def true_sizes(count):
    """The least number of literals of every function: combine cheaper ones until all are reached."""
    full = (1 << (1 << count)) - 1
    sizes = {table: 1 for variable in variable_tables(count) for table in (variable, full & ~variable)}
    size = 1
    while len(sizes) < full - 1:
        size += 1
        by_size = [[table for table, cost in sizes.items() if cost == k] for k in range(size)]
        for k in range(1, size // 2 + 1):
            for one in by_size[k]:
                for other in by_size[size - k]:
                    for table in (one & other, one | other):
                        if table not in (0, full):
                            sizes.setdefault(table, size)
    return sizes


@pytest.mark.parametrize("count", [2, 3])
def test_exact_for_every_function_of_few_variables(count):
    minimiser = Minimiser([1] * count)
    for table, size in true_sizes(count).items():
        formula = minimiser.shortest(table)
        assert table_of(formula, count) == table
        assert minimiser.cost(formula) == size


def random_read_once(rng, variables):
    """A random formula that uses each variable once."""
    if len(variables) == 1:
        return int(variables[0]) if rng.random() < 0.7 else ~int(variables[0])
    cut = int(rng.integers(1, len(variables)))
    return (
        "&" if rng.random() < 0.5 else "|",
        (random_read_once(rng, variables[:cut]), random_read_once(rng, variables[cut:])),
    )


def test_functions_that_can_use_each_variable_once_do():
    rng = np.random.default_rng(1)
    for _ in range(60):
        count = int(rng.integers(2, 9))
        table = table_of(random_read_once(rng, rng.permutation(count)), count)
        formula = Minimiser([1] * count).shortest(table)
        assert table_of(formula, count) == table
        assert Minimiser([1] * count).cost(formula) == count


@pytest.mark.parametrize("count", [4, 5, 6, 7, 8])
def test_random_functions_keep_their_meaning(count):
    rng = np.random.default_rng(count)
    table = int.from_bytes(rng.bytes((1 << count) // 8), "little")
    formula = Minimiser([1] * count).shortest(table)
    assert table_of(formula, count) == table


def test_costs_decide_between_forms():
    """a & b | !a & c | b & c needs no third product; the consensus is never kept, whatever the costs."""
    a, b, c = variable_tables(3)
    table = a & b | ~a & c & 255
    for costs in ([1, 1, 1], [5, 1, 1], [1, 4, 2]):
        minimiser = Minimiser(costs)
        assert minimiser.cost(minimiser.shortest(table)) == 2 * costs[0] + costs[1] + costs[2]
