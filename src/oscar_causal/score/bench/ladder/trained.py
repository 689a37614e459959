"""The rows that ask a label model: each estimator with the world's own probabilities, and with a trained network.

An estimator is a configuration of `discover`; what it accepts at its defaults is the row. The tuned row chooses
settings and cut on `Part.judge`, asking a model that learnt from `Part.learn` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import one_thread
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.score.bench.estimators import THRESHOLDS, prefix_settings
from oscar_causal.score.bench.ladder.estimators_alone import (
    PrefixMoves,
    input_x_gradient,
    kernel_shap,
    leave_one_out,
    shapley_sampling,
    slopes_alone,
)
from oscar_causal.score.bench.ladder.interface import Answers, Explained, Method, Part, answers_of
from oscar_causal.score.bench.ladder.models import ModelSettings, device, trained_on, true_model
from oscar_causal.score.bench.ladder.scoring import score
from oscar_causal.score.bench.ladder.tuning import TUNED, Cut, cut_answers, grid

TRUE = "true P: "
CONTEXTS_C = (4, 15)
"""Values of c that the tuned `prefix` may choose from."""
ModelOf = Callable[[Part, Dataset, Dataset], Any]
"""(part, what it learns from, what it is asked about) -> a label model."""


@dataclass(frozen=True)
class Estimator:
    """An estimator at its defaults, and what may be chosen on sequences whose reasons are known."""

    config: DiscoveryConfig
    scored: tuple[DiscoveryConfig, ...] = ()
    """Configurations whose scores are cut; empty: there is nothing to choose."""
    cuts: Callable[[Answers], Any] = grid
    """Cuts to choose from, given the answers on `judge`."""
    decided: Callable[[DiscoveryConfig, Cut], DiscoveryConfig] | None = None
    """The configuration that does by itself what scores and cut have chosen; None: scores are cut."""


def _rating(function: Any) -> Estimator:
    config = DiscoveryConfig(estimator=function)
    return Estimator(config, (config,))


def _prefix_at(scored: DiscoveryConfig, cut: Cut) -> DiscoveryConfig:
    moves = scored.estimator
    assert isinstance(moves, PrefixMoves)  # noqa: S101 - see ESTIMATORS
    return prefix_settings(replace(moves.config, threshold=cut.least))


ESTIMATORS: Mapping[str, Estimator] = {
    "input x gradient": _rating(input_x_gradient),
    "leave-one-out": _rating(leave_one_out),
    "prefix": Estimator(
        prefix_settings(),
        tuple(DiscoveryConfig(estimator=PrefixMoves(PrefixConfig(context=c))) for c in CONTEXTS_C),
        lambda answers: [Cut(least=k) for k in THRESHOLDS],
        _prefix_at,
    ),
    "slopes alone": Estimator(DiscoveryConfig(estimator=slopes_alone)),
    "tested only": Estimator(DiscoveryConfig(intervention=InterventionConfig(tested_only=True))),
    "intervention": Estimator(DiscoveryConfig()),
    "intervention N=256": Estimator(DiscoveryConfig(intervention=InterventionConfig(contexts=256))),
}
"""Row -> estimator, from the simplest on."""
DEAR: Mapping[str, Estimator] = {
    "shapley sampling": _rating(shapley_sampling),
    "kernel shap": _rating(kernel_shap),
}
"""Estimators that take hundreds or thousands of passes for a sequence: for a few worlds."""


def true_rows(estimators: Mapping[str, Estimator]) -> dict[str, Method]:
    """Every estimator with a perfect label model."""
    return {TRUE + name: row for name, row in _rows(estimators, true_model, ModelSettings().judged).items()}


def trained_rows(estimators: Mapping[str, Estimator], settings: ModelSettings | None = None) -> dict[str, Method]:
    """Every estimator with the label model trained on the part's sequences."""
    how = settings or ModelSettings()

    def model(part: Part, learnt: Dataset, asked: Dataset) -> Any:
        return trained_on(learnt, part, part.seed, how).models[0]

    return _rows(estimators, model, how.judged)


def _rows(estimators: Mapping[str, Estimator], model_of: ModelOf, judged: int) -> dict[str, Method]:
    rows: dict[str, Method] = {}
    for name, estimator in estimators.items():
        rows[name] = _at_defaults(estimator, model_of)
        if estimator.scored:
            rows[name + TUNED] = _tuned(estimator, model_of, judged)
    return rows


def _at_defaults(estimator: Estimator, model_of: ModelOf) -> Method:
    return lambda part: explained(model_of(part, part.train, part.test), part.test, estimator.config)


def _tuned(estimator: Estimator, model_of: ModelOf, judged: int) -> Method:
    def explain(part: Part) -> Explained:
        found = _choose(estimator, model_of, part, judged)
        if found is None:
            return _at_defaults(estimator, model_of)(part)
        config, cut, chosen = found
        model = model_of(part, part.train, part.test)
        if estimator.decided is not None:
            return replace(explained(model, part.test, estimator.decided(config, cut)), chosen=chosen)
        given = explained(model, part.test, config)
        return replace(given, answers=cut_answers(given.answers, cut), chosen=chosen)

    return explain


def _choose(
    estimator: Estimator, model_of: ModelOf, part: Part, judged: int
) -> tuple[DiscoveryConfig, Cut, dict[str, Any]] | None:
    """The configuration and the cut with the best F1 on `judge`, the first among equals; None: nothing to choose by."""
    known = {name for name, _ in part.known}
    rows = [row for row, name in enumerate(part.judge.sequence_ids.to_pylist()) if name in known][:judged]
    if not rows:
        return None
    judge = part.judge.take(np.array(rows))
    names = set(judge.sequence_ids.to_pylist())
    truth = {pair: reasons for pair, reasons in part.known.items() if pair[0] in names}
    model, best = model_of(part, part.learn, judge), None
    for config in estimator.scored:
        answers = explained(model, judge, config).answers
        for cut in estimator.cuts(answers):
            figure = score(cut_answers(answers, cut), truth, part.unit).f1()
            if best is None or figure > best[0]:
                best = figure, config, cut
    assert best is not None  # noqa: S101 - there is a cut at least
    figure, config, cut = best
    return config, cut, {"f1": figure, "sequences": len(judge), **asdict(cut), **_told(config)}


def _told(config: DiscoveryConfig) -> dict[str, Any]:
    moves = config.estimator
    return {"context": moves.config.context} if isinstance(moves, PrefixMoves) else {}


def explained(model: Any, data: Dataset, config: DiscoveryConfig) -> Explained:
    """What `discover` says of every label of these sequences, and the forward passes for a sequence."""
    boundaries: list[Boundary] = []
    passes = 0
    with one_thread(device()):
        for found in discover(model, data, config):
            boundaries += found
            passes += found[0].contexts if found else 0
    return Explained(answers_of(boundaries), passes / max(len(data), 1))


def with_agreement(method: Method) -> Method:
    """A row, with the share of its causes that the same method finds again with the next training seed."""

    def explain(part: Part) -> Explained:
        first, second = method(part), method(replace(part, seed=part.seed + 1))
        return replace(first, extra={**first.extra, **agreement(first.answers, second.answers)})

    return explain


def agreement(first: Answers, second: Answers) -> dict[str, float]:
    """Of the causes in `first`: the share that `second` calls causes too, and the share that it calls inhibitors.

    >>> from oscar_causal.score.bench.ladder.interface import Answer
    >>> one = {("s", "y"): Answer(frozenset("ABCD"))}
    >>> agreement(one, {("s", "y"): Answer(frozenset("AB"), frozenset("C"))})
    {'agreement': 0.5, 'sign_changes': 0.25}
    """
    causes = [(pair, event) for pair, answer in first.items() for event in answer.causes]
    if not causes:
        return {}
    again = [event in second[pair].causes for pair, event in causes if pair in second]
    turned = [event in second[pair].inhibitors for pair, event in causes if pair in second]
    return {"agreement": sum(again) / len(causes), "sign_changes": sum(turned) / len(causes)}
