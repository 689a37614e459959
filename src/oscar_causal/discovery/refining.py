"""Each label's boundary from what several searches found, improved by how well it predicts labels of other subjects.

Tests of one feature at a time miss what shows together only: twelve events any of which brings a rare label, an order
whose window lies between those of a grid, a route that another one hides. So the boundaries that classical methods
found are starting points, and for a rare label so are all types that raise it by themselves, at once. From each,
features join and leave by the likelihood of the labels of one fold of subjects given all others (`searching`); the best
is taken up again with a pool of what would add to it, windows anew (`pools`), until nothing gains. Last join events
that were never missing (`companions`).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from oscar_causal.data.joining import joined
from oscar_causal.data.rules import Event, event_names, format_rule
from oscar_causal.data.rules.tree import Atom
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import join_subjects, pack_subjects
from oscar_causal.data.worker_pool import WorkerPool
from oscar_causal.discovery.companions import companions
from oscar_causal.discovery.fleet_prior import Classical, features_by_label
from oscar_causal.discovery.pools import SIZE, Candidates, Fleet
from oscar_causal.discovery.reading import Features
from oscar_causal.discovery.searching import Search
from oscar_causal.errors import UsageError

OnProgress = Callable[[int, int], None]
FEW = 300
"""Labels with fewer positives are tried with all types that raise them; patterns of frequent ones would be too many."""
MOST = 14
"""Types of such a start."""
WIDE = 32
"""Boundaries with more features are left as they are: a pool would not hold them and their like."""
ROUNDS = 4
"""Most times that a boundary is taken up again."""
COMPANIONS = 6
"""Most companions that join."""
_opened: list[Fleet] = []
"""What this process learns from, the last one now."""


def refined(
    sources: Sequence[Classical],
    datasets: Sequence[Dataset],
    *,
    workers: int = 1,
    on_progress: OnProgress | None = None,
) -> Classical:
    """The boundary of every label of the sources, from all of them, as these datasets bear it out.

    Best are the datasets that the sources were learnt from. A label with less than half as many positives in them as a
    source had keeps the boundary of a source, the one that predicts it best: so few cannot overrule what many showed.
    So does a label of which a source knows more than `WIDE` features.
    The answer does not depend on `workers`. `on_progress` hears how many labels are done, and of how many. With several
    workers, a script that calls this needs the usual `if __name__ == "__main__"`.
    """
    if not sources:
        raise UsageError("classical: expected at least one source, got none")
    if workers < 1:
        raise UsageError(f"workers: expected at least 1, got {workers}")
    known = [features_by_label(source) for source in sources]
    found = {label: features for part in reversed(known) for label, features in part.items()}
    labelled = [data for data in datasets if len(data.labels.ids)]
    learnt = {label: max(source.positives.get(label, 0) for source in sources) for label in found}
    for label, features in _refine_all(known, learnt, labelled, workers, on_progress):
        found[label] = features
    return Classical(
        " or ".join(dict.fromkeys(source.method for source in sources)),
        {label: features.raising for label, features in found.items()},
        {label: number for source in reversed(sources) for label, number in source.positives.items()},
        join_subjects([*(s.subjects for s in sources), *(pack_subjects(data.subject_ids) for data in labelled)]),
        {label: features.lowering for label, features in found.items()},
    )


def refine(fleet: Fleet, label: int, boundaries: Sequence[Features], learnt_positives: int = 0) -> Features:
    """The boundary of one label (its number) from those that are known, learnt from so many positives."""
    starts = [list(dict.fromkeys(part.atoms)) for part in boundaries]
    candidates = Candidates(fleet, label, (atom for part in starts for atom in part))
    positives = np.count_nonzero(candidates.came)
    if not positives or 2 * positives < learnt_positives or max(map(len, starts)) > WIDE:
        return max(boundaries, key=lambda part: candidates.log_likelihood(part.atoms))
    if positives < FEW:
        starts += [_joined(start, candidates.raising) for start in starts]
    known = [*dict.fromkeys(atom for part in starts for atom in part)][:SIZE]
    search = Search(candidates.count(known))
    places = [[known.index(atom) for atom in part if atom in known] for part in starts]
    best = max((search.improve(part) for part in places), key=search.score)
    score = search.score(best)
    for _ in range(ROUNDS):
        search = Search(candidates.pool([search.pool.atoms[k] for k in best]))
        best = search.improve(range(len(best)))  # a pool begins with the boundary
        if search.score(best) <= score:
            break
        score = search.score(best)
    return _with_companions(candidates, search, best)


def _joined(start: Sequence[Atom], types: Sequence[str]) -> list[Atom]:
    members = {name for atom in start for name in event_names(atom)}
    return [*start, *[Event(name) for name in types if name not in members][:MOST]]


def _with_companions(candidates: Candidates, search: Search, chosen: Sequence[int]) -> Features:
    """The chosen features by whether they raise the label, given each other, or lower it; companions raise it."""
    raises = dict(zip((search.pool.atoms[k] for k in sorted(chosen)), search.weights(chosen) >= 0, strict=True))
    raising = [atom for atom, up in raises.items() if up]
    members = {name for atom in raises for name in event_names(atom)}
    others = [event for event in companions(candidates, raising) if event.name not in members]
    texts = [format_rule(atom) for atom in (*raising, *others[:COMPANIONS])]
    return Features(tuple(texts), tuple(format_rule(atom) for atom, up in raises.items() if not up))


Refined = Iterator[tuple[str, Features]]
Known = Sequence[Mapping[str, Features]]


def _refine_all(
    known: Known, learnt: Mapping[str, int], datasets: Sequence[Dataset], workers: int, on_progress: OnProgress | None
) -> Refined:
    """Every label that is known and was recorded, one after the other."""
    if not datasets:
        return
    data = joined(datasets)
    numbers = {name: number for number, name in enumerate(data.label_names)}
    labels = [label for label in dict.fromkeys(label for part in known for label in part) if label in numbers]
    jobs = [(numbers[label], [part[label] for part in known if label in part], learnt[label]) for label in labels]
    for done, (label, features) in enumerate(zip(labels, _results(Fleet.of(data), jobs, workers), strict=True), 1):
        if on_progress is not None:
            on_progress(done, len(labels))
        yield label, features


def _results(fleet: Fleet, jobs: Sequence[_Job], workers: int) -> Iterator[Features]:
    """What `refine` says, in the order of the jobs."""
    if workers == 1 or len(jobs) <= 1:
        yield from (refine(fleet, *job) for job in jobs)
        return
    with TemporaryDirectory(prefix="oscar-refining-") as name:
        fleet.save(Path(name))
        context = multiprocessing.get_context("spawn")
        with WorkerPool(min(workers, len(jobs)), context, _open, Path(name)) as pool:
            yield from pool.map(_refine_one, jobs)


_Job = tuple[int, list[Features], int]
"""A label's number, its boundaries, and the positives that they were learnt from."""


def _open(folder: Path) -> None:
    """Map the shared tables (once per process)."""
    _opened.append(Fleet.open(folder))


def _refine_one(job: _Job) -> Features:
    return refine(_opened[-1], *job)
