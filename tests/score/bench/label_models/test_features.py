"""Tables of sequences, on sequences short enough to read them off."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oscar_causal.data.batches import encode
from oscar_causal.data.sequences import Dataset, from_records, from_table
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.score.bench.label_models.features import StaticTable, counts, last_values, recencies
from oscar_causal.score.bench.label_models.plain_transformer import _numbers

NAN = float("nan")
DATA = from_records(
    [
        {"sequence_id": "1", "events": ["A", "B", "A"], "times": [0, 2, 10], "labels": [], "value": [1.0, 2.0, NAN]},
        {"sequence_id": "2", "events": ["B", "new"], "times": [5, 6], "labels": [], "value": [3.0, 4.0]},
    ]
)
ENCODED = encode(DATA, Vocabulary(("A", "B"), ()), max_length=9)


def test_counts_recencies_and_last_values() -> None:
    assert counts(ENCODED, 2).tolist() == [[2, 1], [0, 1]]
    np.testing.assert_array_equal(recencies(ENCODED, 2), [[0, 8], [NAN, 1]])
    np.testing.assert_array_equal(last_values(ENCODED, 2), [[NAN, 2], [NAN, 3]])
    assert counts(ENCODED, 1).tolist() == [[2], [0]]  # the most frequent types alone


def test_numbers_of_a_token() -> None:
    start, gap, same, end, place, new, value, missing = _numbers(ENCODED).T
    np.testing.assert_allclose(np.expm1(start), [0, 2, 10, 0, 1])
    np.testing.assert_allclose(np.expm1(gap), [0, 2, 8, 0, 1])
    np.testing.assert_allclose(np.expm1(same), [NAN, NAN, 10, NAN, NAN])
    np.testing.assert_allclose(np.expm1(end), [10, 8, 0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(np.expm1(place), [0, 1, 2, 0, 1])
    assert new.tolist() == [1, 1, 0, 1, 1]
    np.testing.assert_array_equal(value, [1, 2, NAN, 3, 4])
    assert missing.tolist() == [0, 0, 1, 0, 0]


def test_static_covariates_are_numbers_or_columns() -> None:
    def data(rows: list[dict[str, str]]) -> Dataset:
        n = len(rows)
        static = pa.array([list(row.items()) for row in rows], pa.map_(pa.string(), pa.string()))
        columns = {"sequence_id": [str(i) for i in range(n)], "events": [["A"]] * n, "times": [[0.0]] * n}
        return from_table(pa.table({**columns, "static": static}))

    table = StaticTable.of(data([{"age": str(a), "site": s} for a in (20, 40) for s in ("n", "s") * 6]))
    found = table(data([{"age": "40", "site": "s"}, {"site": "elsewhere"}, {"age": "no number", "site": "n"}]))
    assert found.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]  # age, site n, site s
