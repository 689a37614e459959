"""`prefix` at many thresholds from one pass: the curves of a sequence are computed once and cut at every k.

A larger k accepts less, so for each event the largest k that still accepts it says everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from oscar_causal.data.sequences import Dataset, Int64
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery import prefix
from oscar_causal.discovery.jobs import Job
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.score.bench.processes import Desk, Processes, pieces_of
from oscar_causal.score.discoveries import Accepted
from oscar_causal.score.matching import Pair
from oscar_causal.score.scoring import Explained


@dataclass(frozen=True)
class PrefixPass:
    """One pass of `prefix` over sequences: for every pair the events that some threshold accepts."""

    pairs: tuple[Pair, ...]
    accepted: tuple[tuple[int, str, str, float], ...]
    """(number of the pair, event, verdict, largest k that accepts it)."""
    passes: tuple[int, ...]
    """Contexts of each sequence."""
    seconds: float = 0.0

    def at(self, k: float) -> Explained:
        """What `discover` with this k accepts."""
        found = (Accepted(self.pairs[n], event, verdict) for n, event, verdict, most in self.accepted if k <= most)
        return Explained(self.pairs, tuple(found))

    def to_json(self) -> dict[str, Any]:
        """For a file."""
        return {name: getattr(self, name) for name in ("pairs", "accepted", "passes", "seconds")}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> PrefixPass:
        """From a file."""
        pairs = tuple((str(sequence_id), str(label)) for sequence_id, label in value["pairs"])
        accepted = tuple((int(n), str(e), str(v), float(k)) for n, e, v, k in value["accepted"])
        return cls(pairs, accepted, tuple(value["passes"]), float(value["seconds"]))


def joined(parts: Sequence[PrefixPass]) -> PrefixPass:
    """Passes over different sequences as one."""
    pairs: list[Pair] = []
    accepted: list[tuple[int, str, str, float]] = []
    for part in parts:
        accepted += [(len(pairs) + n, event, verdict, most) for n, event, verdict, most in part.accepted]
        pairs += part.pairs
    passes = tuple(number for part in parts for number in part.passes)
    return PrefixPass(tuple(pairs), tuple(accepted), passes, sum(part.seconds for part in parts))


def prefix_pass(
    processes: Processes, job: Job, count: int, thresholds: Sequence[float], on_progress: Callable[[int, int], None]
) -> PrefixPass:
    """One pass over the job's `count` sequences, cut at these thresholds."""
    parts, done, pieces = [], 0, pieces_of(count)
    for piece, part in zip(pieces, processes.each(partial(_pass, tuple(sorted(thresholds))), job, pieces), strict=True):
        parts.append(part)
        done += len(piece)
        on_progress(done, count)
    return joined(parts)


def _pass(thresholds: tuple[float, ...], desk: Desk, rows: Int64) -> PrefixPass:
    part = desk.data.take(rows)
    return joined([_sequence(desk, part.take(np.array([k])), thresholds) for k in range(len(rows))])


def _sequence(desk: Desk, one: Dataset, thresholds: tuple[float, ...]) -> PrefixPass:
    config, seed = desk.config.prefix, desk.config.seed
    model = desk.models.for_sequence(one.subject_ids[0].as_py())
    encoded = desk.models.models[0].encode(one)
    sequence, sequence_id = sequence_contexts(encoded, 0), one.sequence_ids[0].as_py()
    labels = np.sort(encoded.labels[0]).astype(np.int64)
    pairs = tuple((sequence_id, model.vocabulary.labels[int(label)]) for label in labels)
    if not pairs:
        return PrefixPass((), (), ())
    if sequence.event_ids.shape[1] <= config.context:  # too short for any threshold
        return PrefixPass(pairs, (), (0,))
    names = [model.vocabulary.name(int(event)) for event in sequence.event_ids[0]]
    pasts = prefix.sample_pasts(model, sequence, config, seed=seed, sequence_id=sequence_id)
    curves = prefix.prefix_curves(model, sequence, pasts, labels, config.context)
    times = sequence.times.cpu().numpy()
    found = [
        (n, event, verdict, most)
        for n in range(len(pairs))
        for (event, verdict), most in _largest(curves, n, names, times, config, thresholds).items()
    ]
    return PrefixPass(pairs, tuple(found), (len(pasts),))


def _largest(
    curves: prefix.PrefixCurves,
    column: int,
    names: list[str],
    times: Any,
    config: PrefixConfig,
    thresholds: tuple[float, ...],
) -> dict[tuple[str, str], float]:
    """(event, verdict) -> the largest of the rising thresholds that accepts it."""
    largest: dict[tuple[str, str], float] = {}
    for k in thresholds:
        evidence = prefix.prefix_evidence(curves, column, names, times, replace(config, threshold=k))
        accepted = {(item.event, str(item.verdict)): k for item in evidence if item.verdict in ("cause", "inhibitor")}
        if not accepted:
            break
        largest |= accepted
    return largest
