"""What the algorithms talk to: it tests, corrects for the number of tests, counts them, and watches the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from oscar_causal.discovery.classical.ci_tests import (
    Associations,
    CiConfig,
    Statistic,
    attainable_family,
    log_chi2_tail,
    rejected,
)
from oscar_causal.discovery.classical.exact import exact_p_value, needs_exact

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
SPARE_NATS = 12.0
"""Where the χ² law is this far below the threshold, the exact law is not asked: they never differ that much."""

WELL_ABOVE = 1.001
"""A p-value this many times the threshold is above it, whatever was rounded on the way."""


class Table(Protocol):
    """What is tested: rows and named columns, by counts alone (`SparseTable`, `CategoricalTable`)."""

    names: tuple[str, ...]
    n_rows: int

    @property
    def n_columns(self) -> int:
        """Number of variables."""

    def associations(self, target: int, given: Sequence[int], candidates: Int64, statistic: Statistic) -> Associations:
        """Test every candidate against `target` inside the strata of `given`."""

    def entropies(self, columns: Int64) -> Float64:
        """Entropy of each column in nats."""


class OutOfTime(Exception):
    """The time limit has passed; algorithms catch it and return what they have, marked incomplete."""


@dataclass(frozen=True)
class Scan:
    """One family of tests of many candidates against one target given one set."""

    found: Associations
    family: int
    """Number of tests to correct for."""
    ranked: Int64
    """Indices into `found` of those that may reject, strongest first."""


class CiTester:
    """Tests on one table under one configuration. `allowed` are the columns that may enter as candidates.

    Candidates are ranked by p-value; those of binary tables by the statistic, because their degrees of freedom only say
    in how many strata a candidate happens to occur.
    """

    def __init__(
        self, table: Table, config: CiConfig, *, allowed: Int64 | None = None, deadline: float | None = None
    ) -> None:
        self.table, self.config, self.deadline = table, config, deadline
        self.allowed = np.arange(table.n_columns) if allowed is None else np.asarray(allowed, np.int64)
        self.tests = 0

    def scan(
        self,
        target: int,
        given: Sequence[int] = (),
        candidates: Sequence[int] | Int64 | None = None,
        *,
        apart: bool = False,
    ) -> Scan:
        """Test the candidates (default: all that are allowed) against `target` given `given`.

        They are one family, corrected for its size; `apart` asks each as a question of its own, uncorrected.
        """
        self.check_time()
        chosen = self.allowed if candidates is None else np.asarray(candidates, np.int64)
        for column in (target, *given):
            chosen = chosen[chosen != column]
        found = self.table.associations(target, given, chosen, self.config.statistic)
        testable = self._testable(found)
        self.tests += int(testable.sum())
        family = 1 if apart else self._family(found, testable)
        testable &= self._attainable(found, family)
        dof = np.minimum(found.dof, 1) if self._is_exact(found) else found.dof
        index = np.flatnonzero(testable & (found.statistic >= self._limits(family, dof)))
        log_p = log_chi2_tail(found.statistic[index], dof[index])
        order = np.lexsort((index, -found.statistic[index], log_p))
        return Scan(found, family, index[order[rejected(log_p[order], self.config, family)]])

    def strongest(self, scan: Scan) -> int | None:
        """The strongest candidate that rejects, or None."""
        return next(self._rejecting(scan), None)

    def dependent(self, scan: Scan) -> list[int]:
        """All candidates that reject, strongest first."""
        return list(self._rejecting(scan))

    def related(self, x: int, target: int, given: Sequence[int] = ()) -> bool:
        """Is x dependent on the target given the set? A question of its own: nothing to correct for."""
        return self.strongest(self.scan(target, given, [x], apart=True)) is not None

    def separated(self, target: int, given: Sequence[int], candidates: Sequence[int]) -> list[int]:
        """Which candidates were found to tell nothing more about the target than the set does? See `ask`."""
        return self.ask(target, given, candidates)[0]

    def ask(self, target: int, given: Sequence[int], candidates: Sequence[int]) -> tuple[list[int], dict[int, float]]:
        """The candidates that the set separates from the target, and the strength of all of them (-ln p, χ² law).

        Each is a question of its own. Those with too few rows to ask are not separated: no answer is not a "no".
        """
        if not len(candidates):
            return [], {}
        found = (scan := self.scan(target, given, candidates, apart=True)).found
        asked = self._testable(found) | (found.dof == 0)
        kept = set(self._rejecting(scan))
        gone = [int(x) for x in found.candidates[asked] if int(x) not in kept]
        return gone, dict(zip(found.candidates.tolist(), (-found.log_p).tolist(), strict=True))

    def evidence(self, x: int, target: int, given: Sequence[int]) -> tuple[float, float]:
        """Statistic and p-value of one test, whether it rejects or not; (0, 1) where there is nothing to test."""
        found = self.table.associations(target, given, np.array([x]), self.config.statistic)
        return float(found.statistic[0]), float(np.exp(self._log_p(found, 0)))

    def check_time(self) -> None:
        """Raise OutOfTime when the deadline (on the monotonic clock) has passed."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTime

    def _rejecting(self, scan: Scan) -> Iterator[int]:
        found, ranked = scan.found, scan.ranked
        log_p = log_chi2_tail(found.statistic[ranked], found.dof[ranked])
        doubtful = log_p >= np.log(self.config.alpha / max(scan.family, 1)) - SPARE_NATS
        if self.config.correction == "bh" and scan.family > 1:
            log_p[doubtful] = [self._log_p(found, int(index)) for index in ranked[doubtful]]
            yield from found.candidates[ranked[rejected(log_p, self.config, scan.family)]].tolist()
            return
        limit = self.config.alpha / (1 if self.config.correction == "none" else max(scan.family, 1))
        for place, index in enumerate(ranked):  # one at a time: mostly only the first is asked for
            if doubtful[place]:
                self.check_time()
                log_p[place] = self._log_p(found, int(index), limit)
            if rejected(log_p[place : place + 1], self.config, scan.family)[0]:
                yield int(found.candidates[index])

    def _testable(self, found: Associations) -> npt.NDArray[np.bool_]:
        """Something varies and there are rows enough; the exact law asks for no number of rows."""
        return found.testable(0.0 if self._is_exact(found) else self.config.rows_per_dof)

    def _family(self, found: Associations, testable: npt.NDArray[np.bool_]) -> int:
        """All tests made; on binary tables only those that could have rejected at all."""
        if self.config.correction != "none" and found.largest is not None:
            return attainable_family(found.largest[testable], self.config.alpha)
        return int(testable.sum())

    def _attainable(self, found: Associations, family: int) -> npt.NDArray[np.bool_]:
        """Which tests could have rejected; the family was counted without the others, so they may not."""
        if self.config.correction == "none" or found.largest is None:
            return np.ones(len(found.candidates), bool)
        return np.asarray(found.largest >= special.chdtri(1, self.config.alpha / max(family, 1)) * (1 - 1e-9))

    def _is_exact(self, found: Associations) -> bool:
        return self.config.exact and found.cells is not None

    def _log_p(self, found: Associations, index: int, limit: float = np.inf) -> float:
        """ln p of one candidate: by the exact law where expected counts are small, else by the χ² law.

        A p-value well above `limit` need not be the final one, only above it.
        """
        if found.cells is not None and self.config.exact:
            mine = found.cells.of(index)
            if needs_exact(mine):
                p_value = exact_p_value(mine, self.config.statistic, ceiling=limit * WELL_ABOVE)
                return float(np.log(max(p_value, np.finfo(float).tiny)))
        return float(log_chi2_tail(found.statistic[[index]], found.dof[[index]])[0])

    def _limits(self, family: int, dof: Int64) -> Float64:
        """The statistic that may reject, for each candidate's degrees of freedom; infinite for none."""
        strict = self.config.correction == "bonferroni" and family > 0
        level = self.config.alpha / family if strict else self.config.alpha
        table = np.full(int(dof.max(initial=0)) + 1, np.inf)
        table[1:] = special.chdtri(np.arange(1, len(table)), level) * (1 - 1e-9)
        return table[dof]
