"""`oscar score`: a results folder against every truth its dataset carries; several folders beside each other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.discovery.boundary import AcceptedBy, Boundary
from oscar_causal.discovery.results import read_run, read_table
from oscar_causal.errors import FolderError, UsageError
from oscar_causal.score.breakdowns import (
    by_group,
    cause_groups,
    frequency_groups,
    over_folds,
    per_label,
    size_groups,
    spread,
    subjects_of,
    training_counts,
)
from oscar_causal.score.comparison import common_pairs, paired_bootstrap
from oscar_causal.score.controls import controls
from oscar_causal.score.discoveries import Accepted, q_calibration, sign_agreement
from oscar_causal.score.ground import Ground, ground_of
from oscar_causal.score.matching import (
    AVERAGES,
    Pair,
    PairScores,
    Sets,
    Truth,
    match,
    summarise,
    truth_of,
    why_roles,
)

KEYS = ("sequence_id", "label")
POSITIVE_TRUTHS = ("rule_present", "why", "why_necessary")
"""Truths about what brought a label about: found inhibitors do not count there, neither for nor against."""


@dataclass(frozen=True)
class Explained:
    """What a results folder claims: explained pairs with an observed label, and the events accepted for them."""

    pairs: tuple[Pair, ...]
    accepted: tuple[Accepted, ...]

    def found(self, truth: str) -> Sets:
        """The events that count against a truth: causes alone, or inhibitors too where the truth holds them."""
        only_causes = truth in POSITIVE_TRUTHS
        sets: dict[Pair, set[str]] = {pair: set() for pair in self.pairs}
        for item in self.accepted:
            if item.verdict == "cause" or not only_causes:
                sets[item.pair].add(item.event)
        return {pair: frozenset(events) for pair, events in sets.items()}

    def restricted(self, sequence_ids: Collection[str]) -> Explained:
        """What is claimed about these sequences alone."""
        return Explained(
            tuple(pair for pair in self.pairs if pair[0] in sequence_ids),
            tuple(item for item in self.accepted if item.pair[0] in sequence_ids),
        )


def score_results(
    results: Path | str, *, dataset: Path | str | None = None, model: Path | str | None = None, folds: int | None = None
) -> dict[str, Any]:
    """Precision, recall and F1 of the boundaries of a results folder; see `matching` for the truths and averages.

    Beside each truth's averages: `by_size` (events of the label's rule), `by_causes` (causes present), `by_frequency`
    (training sequences with the label), `per_label`, `controls`, and with `folds` the spread over that many parts of
    the subjects. `accepted_by`: see `by_acceptance`.
    """
    if folds is not None and folds < 2:
        raise UsageError(f"folds: expected at least 2, got {folds}")
    run = read_run(results)
    data = _dataset_of(results, run, dataset)
    explained = read_explained(results)
    counts, where = training_counts(data, _model_of(run, model))
    ground = ground_of(data, explained.pairs, counts)
    return {
        "results": str(results),
        "estimator": str(run.get("estimator")),
        "pairs": len(explained.pairs),
        "accepted": len(explained.accepted),
        "accepted_by": by_acceptance(explained, ground.truths),
        "frequency_counted_in": where,
        "truth": score_explained(explained, ground, folds=folds),
        **discovery_figures(explained, data),
    }


def compare_results(
    results: Sequence[Path | str],
    *,
    dataset: Path | str | None = None,
    model: Path | str | None = None,
    folds: int | None = None,
    draws: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Each results folder's scores (`runs`) and, when all are of one estimator (folds, seeds), their `mean` and `sd`.

    With `draws` also `differences`: every later folder against the first, on the pairs both explain, by a bootstrap
    over subjects.
    """
    if draws is not None and draws < 1:
        raise UsageError(f"draws: expected at least 1, got {draws}")
    if draws is not None and len(results) < 2:
        raise UsageError(f"compare: expected at least two results folders, got {len(results)}")
    if seed < 0:
        raise UsageError(f"seed: expected 0 or more, got {seed}")
    runs = [score_results(folder, dataset=dataset, model=model, folds=folds) for folder in results]
    averages = [{name: {key: part[key] for key in AVERAGES} for name, part in run["truth"].items()} for run in runs]
    same = len({run["estimator"] for run in runs}) == 1
    compared: dict[str, Any] = {"runs": runs, **(spread(averages) if same else {})}
    if draws is not None:
        data = _dataset_of(results[0], read_run(results[0]), dataset)
        compared["differences"] = _differences(results, data, draws, np.random.default_rng(seed))
    return compared


def score_explained(explained: Explained, ground: Ground, *, folds: int | None = None) -> dict[str, Any]:
    """Scores against each truth, with breakdowns and controls; `ground` holds at least the explained pairs."""
    if not explained.pairs:
        raise UsageError("score: the results explain no pair")
    scored = {}
    for name, truth in ground.truths.items():
        scores = match(explained.found(name), truth)
        scored[name] = {
            **summarise(scores),
            **_breakdowns(scores, ground),
            "per_label": per_label(scores),
            "controls": controls(scores, truth, ground.present) | _presence(name, scores, ground.truths),
        }
        if folds is not None:
            subjects = [ground.subjects[sequence_id] for sequence_id, _ in scores.pairs]
            scored[name]["over_folds"] = over_folds(scores, subjects, folds)
    return scored


def by_acceptance(explained: Explained, truths: Mapping[str, Truth]) -> dict[str, Any]:
    """What was accepted by `test` and what by `score`, each with its precision; nothing where no event says which.

    `precision` (truth -> share) is over all those events of pairs with a truth, `of` their number; None where there
    are none.
    """
    ways: dict[str, Any] = {}
    for way in get_args(AcceptedBy):
        part = Explained(explained.pairs, tuple(item for item in explained.accepted if item.by == way))
        counts = {name: match(part.found(name), truth) for name, truth in truths.items()}
        ways[way] = {
            "accepted": len(part.accepted),
            "of": {name: int(item.found.sum()) for name, item in counts.items()},
            "precision": {
                name: float(item.common.sum() / item.found.sum()) if item.found.any() else None
                for name, item in counts.items()
            },
        }
    return ways if any(part["accepted"] for part in ways.values()) else {}


def discovery_figures(explained: Explained, data: Dataset) -> dict[str, Any]:
    """`signs` and `q_calibration` against the dataset's reasons; nothing where it has none."""
    roles = why_roles(data, explained.pairs)
    if roles is None:
        return {}
    return {
        "signs": sign_agreement(explained.accepted, roles),
        "q_calibration": q_calibration(explained.accepted, explained.pairs, roles),
    }


def read_explained(results: Path | str) -> Explained:
    """The explained pairs with an observed label, and what was accepted for them."""
    verdicts, causes = read_table(results, "verdicts"), read_table(results, "causes")
    keys = zip(*(verdicts[name].to_pylist() for name in (*KEYS, "observed")), strict=True)
    pairs = {(sequence_id, label): None for sequence_id, label, observed in keys if observed}
    columns = (causes[name].to_pylist() for name in (*KEYS, "event", "verdict", "q_value", "accepted_by"))
    accepted = (
        Accepted((sequence_id, label), *rest)
        for sequence_id, label, *rest in zip(*columns, strict=True)
        if (sequence_id, label) in pairs
    )
    return Explained(tuple(pairs), tuple(accepted))


def explained_of(boundaries: Iterable[Boundary]) -> Explained:
    """The same from boundaries in memory."""
    observed = [item for item in boundaries if item.observed]
    accepted = (
        Accepted((item.sequence_id, item.label), event.event, event.verdict, event.q_value, event.accepted_by)
        for item in observed
        for event in item.causes
    )
    return Explained(tuple((item.sequence_id, item.label) for item in observed), tuple(accepted))


def _breakdowns(scores: PairScores, ground: Ground) -> dict[str, Any]:
    truths = ground.truths
    causes = truths.get("why", truths.get("rule_present", {}))
    return {
        "by_size": by_group(scores, size_groups(truths.get("rule_all", {}))),
        "by_causes": by_group(scores, cause_groups(causes)),
        "by_frequency": by_group(scores, frequency_groups(scores.pairs, ground.label_counts)),
    }


def _presence(name: str, scores: PairScores, truths: Mapping[str, Truth]) -> dict[str, Any]:
    """What knowing the rule's positive events and looking which are present would score, where a rule is published."""
    if name not in ("why", "why_necessary") or "rule_present" not in truths:
        return {}
    known = truths["rule_present"]
    return {"rule_present": summarise(match({p: known[p] for p in scores.pairs if p in known}, truths[name]))}


def _differences(
    results: Sequence[Path | str], data: Dataset, draws: int, generator: np.random.Generator
) -> list[dict[str, Any]]:
    for folder in results[1:]:
        other = (read_run(folder).get("dataset") or {}).get("digest", data.info.get("digest"))
        if other != data.info.get("digest"):
            raise FolderError(f"{folder}: explains another dataset than {results[0]}; expected the same to compare")
    explained = [read_explained(folder) for folder in results]
    truths = truth_of(data, dict.fromkeys(pair for part in explained for pair in part.pairs))
    found = []
    for folder, other in zip(results[1:], explained[1:], strict=True):
        by_truth = {}
        for name, truth in truths.items():
            pair = common_pairs(*(match(part.found(name), truth) for part in (explained[0], other)))
            subjects = subjects_of(data, pair[0].pairs)
            by_truth[name] = paired_bootstrap(*pair, subjects, draws=draws, generator=generator)
        found.append({"first": str(results[0]), "second": str(folder), "truth": by_truth})
    return found


def _dataset_of(results: Path | str, run: Mapping[str, Any], given: Path | str | None) -> Dataset:
    told = run.get("dataset") or {}
    place = Path(given or told.get("path") or "unknown")
    if not place.exists():
        raise FolderError(f"{results}: its dataset was {place}, which is not there; say --dataset")
    data = read_dataset(place)
    if data.info.get("digest") != told.get("digest", data.info.get("digest")):
        raise FolderError(f"{place}: is not the dataset of {results} (other content)")
    return data


def _model_of(run: Mapping[str, Any], given: Path | str | None) -> Path | None:
    """The model folder, if there is one with a record of its training: classical methods and adapters have none."""
    if given is not None:
        return Path(given)
    place = (run.get("model") or {}).get("path")
    if place is None or not any((Path(place) / name).exists() for name in ("training.json", "folds.json")):
        return None
    return Path(place)
