"""Several classical boundaries for a label (presence alone, orders and counts, other methods): which reads best?

Each is read as `reading` reads it, and predicts the labels of one fold of subjects from the patterns of all others. The
one with the highest log likelihood is kept: orders where order matters, presence where it does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oscar_causal.data.sequences import Dataset
from oscar_causal.discovery.evidence import merge
from oscar_causal.discovery.fleet_prior import Classical, features_by_label
from oscar_causal.discovery.reading import Readings, count_patterns, readings_of
from oscar_causal.errors import UsageError


def best_classical(sources: Sequence[Classical], datasets: Sequence[Dataset]) -> Classical:
    """For each label the boundary that predicts it best in these datasets; the first of equals."""
    if not sources:
        raise UsageError("classical: expected at least one source, got none")
    if len(sources) == 1:
        return sources[0]
    features = [features_by_label(source) for source in sources]
    counted = merge([count_patterns(data, *features) for data in datasets]).patterns
    read = [readings_of(counted, part) or Readings(part, {}) for part in features]
    labels = dict.fromkeys(label for source in sources for label in source.features)
    chosen = {}
    for label in labels:
        scores = [-np.inf if label not in r.counts else r.log_likelihood(label) for r in read]
        known = [k for k, source in enumerate(sources) if label in source.features]
        chosen[label] = sources[max(known, key=lambda k: (scores[k], -k))]
    subjects = {source.subjects for source in sources}
    return Classical(
        " or ".join(dict.fromkeys(source.method for source in sources)),
        {label: source.features[label] for label, source in chosen.items()},
        {label: source.positives.get(label, 0) for label, source in chosen.items()},
        subjects.pop() if len(subjects) == 1 else None,
        {label: source.lowering.get(label, ()) for label, source in chosen.items()},
    )
