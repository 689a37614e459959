"""A process of event sequences and labels whose every probability, information and effect is known exactly.

The oracle of the tests: what an ideal Tf_x and Tf_y would answer, and the truths that estimators are held against.
Positions are 0-based; events and labels are given by id; probabilities are float64 and exact up to rounding.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscar_causal.data.solvable.config import SolvableConfig
from oscar_causal.data.solvable.effects import removal_effect, step_effect, tau
from oscar_causal.data.solvable.information import (
    PrefixScores,
    bernoulli_entropy,
    bernoulli_kl,
    prefix_scores,
    true_cmi,
    truncate,
)
from oscar_causal.data.solvable.law import FloatArray, IntArray
from oscar_causal.data.solvable.oracle import ExactOracle, PerturbedOracle
from oscar_causal.data.solvable.outcome import parent_signs
from oscar_causal.data.solvable.sampling import SolvableSample, draw
from oscar_causal.data.solvable.tables import Tables
from oscar_causal.errors import UsageError


class SolvableProcess(ExactOracle):
    """One process, tabulated: an `ExactOracle` that also samples and knows parents, information and effects.

    >>> from oscar_causal.data.solvable import example
    >>> process = example("and")
    >>> [process.event_names[t] for t in process.true_parents(0)]
    ['A', 'B']
    """

    def __init__(self, config: SolvableConfig) -> None:
        super().__init__(Tables(config))
        self.config = config

    def sample(self, count: int, rng: np.random.Generator) -> SolvableSample:
        """Draw `count` sequences with times, labels and the hidden driver."""
        if count < 0:
            raise UsageError(f"sample: expected a count from 0, got {count}")
        return draw(self._tables, count, rng)

    def perturbed(self, error: float, seed: int = 0) -> PerturbedOracle:
        """The same answers, each off by a reproducible error of at most `error` in log-odds."""
        return PerturbedOracle(self._tables, error, seed)

    def true_parents(self, label: int) -> tuple[int, ...]:
        """The event types with a direct effect on the label: blanking them changes P(Y | sequence) somewhere."""
        return tuple(self.signs(label))

    def signs(self, label: int) -> dict[int, int]:
        """Each true parent's sign: +1 only raises, -1 only lowers, 0 does both (XOR)."""
        return parent_signs(self._tables.outcome, self.config, self._label(label))

    def cmi(self, label: int, position: int) -> float:
        """I(Y_j; X_i | X_<i) in nats, Eq. 3, over the process's own contexts."""
        return float(true_cmi(self._tables)[self._position(position), self._label(label)])

    def information_gain(self, label: int, prefix: npt.ArrayLike) -> float:
        """Eq. 1 for the last event of a prefix: KL(P(Y | prefix) || P(Y | prefix without it)), in nats."""
        before, after = self._before_after(label, prefix)
        return float(bernoulli_kl(after, before))

    def entropy_drop(self, label: int, prefix: npt.ArrayLike) -> float:
        """The right side of Eq. 2 for the last event of a prefix: H(Y | before) - H(Y | after), in nats."""
        before, after = self._before_after(label, prefix)
        return float(bernoulli_entropy(before) - bernoulli_entropy(after))

    def proposal(self, sequence: npt.ArrayLike, *, top_k: int | None = None, top_p: float | None = None) -> FloatArray:
        """The law of each position given the observed events before it, truncated if asked (`truncate`), (L, V)."""
        return truncate(self.next_event_probs_along(self._whole(sequence)), top_k, top_p)

    def eq4(self, label: int, sequence: npt.ArrayLike, c: int, proposal: FloatArray | None = None) -> FloatArray:
        """Eq. 4 with endless contexts, in nats, at every position, (L,).

        Positions below c are drawn, each on its own, from `proposal` (at least c rows of V; default `self.proposal`);
        later ones are as observed. Values below position c are about drawn events, not about the observed ones.
        """
        scores: FloatArray = self._prefix_scores(sequence, c, proposal).gain_nats[:, self._label(label)]
        return scores

    def indicator(
        self, label: int, sequence: npt.ArrayLike, c: int, proposal: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of P(Y | z, x_i) - P(Y | z) over the contexts of `eq4`, each (L,)."""
        scores, j = self._prefix_scores(sequence, c, proposal), self._label(label)
        return scores.shift_mean[:, j], scores.shift_sd[:, j]

    def direct_effects(
        self, sequence: npt.ArrayLike, r: float, law: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """tau_t(r, Q) of every type t present (see `effects`): type ids (T,) and effects (T, Y).

        `law` is Q, one row of V per position; by default the law given the observed events before the position.
        """
        if not 0 < r < 1:
            raise UsageError(f"direct effects: expected r strictly between 0 and 1, got {r}")
        observed = self._whole(sequence)
        return tau(self._tables, observed, r, self._law(observed, law))

    def direct_effect(
        self, label: int, sequence: npt.ArrayLike, event: int, r: float, law: FloatArray | None = None
    ) -> float:
        """tau_t(r, Q) of one type on one label."""
        types, effects = self.direct_effects(sequence, r, law)
        (at,) = np.searchsorted(types, self._present(sequence, (event,)))
        return float(effects[at, self._label(label)])

    def leave_one_out(self, label: int, sequence: npt.ArrayLike, event: int, law: FloatArray | None = None) -> float:
        """P(Y | sequence) minus its mean after replacing all occurrences of one type."""
        return self._removal(label, sequence, (event,), law)

    def pair_out(
        self, label: int, sequence: npt.ArrayLike, events: tuple[int, int], law: FloatArray | None = None
    ) -> float:
        """P(Y | sequence) minus its mean after replacing two types together."""
        return self._removal(label, sequence, events, law)

    def total_effect(
        self, label: int, event: int, position: int | None = None, *, reference: int | None = None
    ) -> float:
        """P(Y | do(x_i = event)) - P(Y | do(x_i = something else)), everything after i regenerated.

        "Something else" is the type `reference` or, without one, a draw from the process with this type left out: which
        may itself be a cause, so even an inert type has an effect then. Without a position, the mean over positions.
        """
        self._types((event,) if reference is None else (event, reference))
        positions = range(self.length) if position is None else [self._position(position)]
        effects = [step_effect(self._tables, i, event, reference)[self._label(label)] for i in positions]
        return float(np.mean(effects))

    def _prefix_scores(self, sequence: npt.ArrayLike, c: int, proposal: FloatArray | None) -> PrefixScores:
        observed = self._whole(sequence)
        if not 0 <= c <= self.length:
            raise UsageError(f"c: expected 0 to {self.length} drawn positions, got {c}")
        law = self._law(observed, proposal, rows=c)[:c]
        symbol_probs = np.eye(self._tables.symbols)[self._tables.lump(observed)]  # (L, K)
        symbol_probs[:c] = self._tables.lump_probs(law / law.sum(axis=1, keepdims=True))
        return prefix_scores(self._tables, symbol_probs)

    def _before_after(self, label: int, prefix: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        along = self.label_probs_along(prefix)
        if along.ndim != 2 or len(along) < 2:
            raise UsageError(f"prefix: expected one prefix of at least one event, got shape {np.shape(prefix)}")
        return along[-2, self._label(label)], along[-1, self._label(label)]

    def _removal(self, label: int, sequence: npt.ArrayLike, events: tuple[int, ...], law: FloatArray | None) -> float:
        observed = self._whole(sequence)
        removed = self._present(observed, events)
        return float(removal_effect(self._tables, observed, removed, self._law(observed, law))[self._label(label)])

    def _law(self, observed: IntArray, law: FloatArray | None, rows: int | None = None) -> FloatArray:
        """A checked law per position; by default the one given the observed events before it."""
        if law is None:
            return self.next_event_probs_along(observed)
        law = np.asarray(law, dtype=np.float64)
        rows, types = self.length if rows is None else rows, len(self.event_names)
        if law.ndim != 2 or len(law) < rows or law.shape[1] != types:
            raise UsageError(f"law of draws: expected at least {rows} rows of {types}, got shape {law.shape}")
        if not (np.isfinite(law).all() and (law >= 0).all() and (law.sum(axis=1) > 0).all()):
            raise UsageError("law of draws: expected rows of finite numbers from 0 with some mass, got others")
        return law

    def _present(self, sequence: npt.ArrayLike, events: tuple[int, ...]) -> IntArray:
        missing = [event for event in events if event not in np.asarray(sequence)]
        if missing:
            raise UsageError(f"event: expected a type present in the sequence, got {missing[0]}")
        return np.array(events, dtype=np.int64)

    def _types(self, events: tuple[int, ...]) -> None:
        for event in events:
            if not 0 <= event < len(self.event_names):
                raise UsageError(f"event: expected an id from 0 to {len(self.event_names) - 1}, got {event}")

    def _label(self, label: int) -> int:
        if not 0 <= label < len(self.label_names):
            raise UsageError(f"label: expected an id from 0 to {len(self.label_names) - 1}, got {label}")
        return label

    def _position(self, position: int) -> int:
        if not 0 <= position < self.length:
            raise UsageError(f"position: expected 0 to {self.length - 1}, got {position}")
        return position
