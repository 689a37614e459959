"""Several classical boundaries for a label (presence alone, orders and counts, other methods): which reads best?

Each is read as `reading` reads it, and predicts the labels of one fold of subjects from the patterns of all others. The
one with the highest log likelihood is kept: orders where order matters, presence where it does not. A search among many
orders easily misses a blocker that one by presence finds; so what raises the label in one boundary is also tried with
what goes against it in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from oscar_causal.data.rules import event_names, parse
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import join_subjects
from oscar_causal.discovery.evidence import merge
from oscar_causal.discovery.fleet_prior import Classical, features_by_label
from oscar_causal.discovery.reading import Features, Readings, count_patterns, readings_of
from oscar_causal.errors import UsageError


def best_classical(sources: Sequence[Classical], datasets: Sequence[Dataset]) -> Classical:
    """For each label the boundary that predicts it best in these datasets; the first of equals."""
    if not sources:
        raise UsageError("classical: expected at least one source, got none")
    if len(sources) == 1:
        return sources[0]
    tried = [*sources, *(_with_blockers(a, b) for a, b in permutations(sources, 2))]
    features = [features_by_label(source) for source in tried]
    counted = merge([count_patterns(data, *features) for data in datasets]).patterns
    read = [readings_of(counted, part) or Readings(part, {}) for part in features]
    labels = dict.fromkeys(label for source in sources for label in source.features)
    chosen = {label: tried[_best(label, features, read)] for label in labels}
    return Classical(
        " or ".join(dict.fromkeys(source.method for source in sources)),
        {label: source.features[label] for label, source in chosen.items()},
        {label: source.positives.get(label, 0) for label, source in chosen.items()},
        join_subjects(source.subjects for source in chosen.values()),
        {label: source.lowering.get(label, ()) for label, source in chosen.items()},
    )


def _best(label: str, features: Sequence[Mapping[str, Features]], read: Sequence[Readings]) -> int:
    """The number of the boundary that predicts the label best; equal ones are asked once."""
    scores: dict[str, float] = {}
    known = [k for k, part in enumerate(features) if label in part]
    for k in known:
        digest = features[k][label].digest
        if digest not in scores:
            scores[digest] = read[k].log_likelihood(label) if label in read[k].counts else -np.inf
    return max(known, key=lambda k: (scores[features[k][label].digest], -k))


def _with_blockers(raising: Classical, other: Classical) -> Classical:
    """The first boundaries, with what goes against the label in the second ones too, unless it is part of a reason."""
    lowering = {}
    for label, members in raising.members.items():
        both = dict.fromkeys((*raising.lowering.get(label, ()), *other.lowering.get(label, ())))
        lowering[label] = tuple(text for text in both if members.isdisjoint(event_names(parse(text))))
    return replace(raising, lowering=lowering)
