"""Where presence does not explain a label: which occurrences suffice, in which order, how close, how many.

1. *Patterns*: in sequences with the label every subset of the occurrences of the candidates is kept and the others are
   taken out; the minimal subsets that keep P(label) above one half are the patterns, `A A B` for instance.
2. *Arrangements*: the events of a frequent pattern are put into backgrounds in random orders at random distances. The
   order (and the window) that tells the arrangements with the label from those without is what the label asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch

from oscar_causal.data.rules import AtLeast, Event, EventIndex, Rule, Then, all_of
from oscar_causal.discovery.contexts import Bool, Float64, Int64, Stream
from oscar_causal.discovery.gains import USUAL_WINDOWS
from oscar_causal.graph.rules.backgrounds import Background, ask, cleared, distinct, inserted
from oscar_causal.graph.rules.truth_table import subsets

CUT = 0.5
MOST_OCCURRENCES = 8
"""Occurrences of candidates kept in one sequence; 2^8 subsets are asked for."""
MOST_OF_ONE = 4
"""Of these, of one event type."""
CLOSEST_S = 20.0
"""Arrangements begin at this distance."""
Pattern = tuple[int, ...]
"""Event ids with repeats, rising."""


@dataclass(frozen=True)
class Route:
    """A sufficient pattern with what is known of its order, as a rule."""

    rule: Rule
    pattern: Pattern
    support: int
    """Sequences with the label in which the pattern was minimal."""
    accuracy: float
    """Balanced accuracy of the rule on the arrangements."""


def minimal_patterns(background: Background, label: int, event_ids: Int64, stream: Stream) -> set[Pattern]:
    """The minimal sufficient patterns of candidates in one sequence; empty where the model does not show the label.

    The pattern () means that the label stays without any candidate.
    """
    positions = _occurrences(background.event_ids, event_ids)
    ids = cleared(background, event_ids, stream)
    keep = subsets(len(positions))  # (2^o, o)
    rows = np.repeat(ids[None, :], len(keep), axis=0)
    rows[:, positions] = np.where(keep, background.event_ids[positions], ids[positions])
    enough = ask(background.model, background.sequence, rows, torch.tensor([label]))[:, 0] > CUT
    minimal = [line for line in np.flatnonzero(enough).tolist() if not _smaller(line, enough)]
    return {tuple(sorted(background.event_ids[positions[keep[line]]].tolist())) for line in minimal}


def _occurrences(ids: Int64, event_ids: Int64) -> Int64:
    """Positions of candidates: the last few of each type, then as many as fit, types with few occurrences first."""
    found: list[tuple[int, int]] = []
    for event in event_ids.tolist():
        at = np.flatnonzero(ids == event)[-MOST_OF_ONE:][::-1]
        found += [(rank, int(position)) for rank, position in enumerate(at)]
    return np.array(sorted(position for _, position in sorted(found)[:MOST_OCCURRENCES]), np.int64)


def _smaller(line: int, enough: Bool) -> bool:
    """Whether some proper subset of a line is enough too."""
    part = (line - 1) & line if line else -1
    while part >= 0:
        if part != line and enough[part]:
            return True
        if part == 0:
            return False
        part = (part - 1) & line
    return False


def frequent_patterns(found: Sequence[set[Pattern]], *, share: float, most: int) -> list[tuple[Pattern, int]]:
    """Patterns of a share of the sequences that show any (two at least), the commonest first, never the empty one."""
    telling = [patterns - {()} for patterns in found if patterns - {()}]
    counts = Counter(pattern for patterns in telling for pattern in patterns)
    least = max(2, share * len(telling)) if len(telling) > 2 else 1
    return [(pattern, n) for pattern, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n >= least][
        :most
    ]


def arrangement_rows(
    background: Background, event_ids: Int64, pattern: Pattern, count: int, stream: Stream
) -> tuple[Int64, Int64, Int64]:
    """`count` random arrangements of a pattern in a background without other candidates.

    The first event stands anywhere, each other one before or after it at a distance drawn evenly in its logarithm.
    Returns rows (N, L), positions and events (N, M).
    """
    length, size = len(background.event_ids), len(pattern)
    times = background.times
    ids = cleared(background, event_ids, stream)
    u = Stream(stream.seed, stream.sequence_id, f"{stream.purpose} arrange").uniforms(count, 1 + 2 * size)
    turn = np.argsort(u[:, 1 : 1 + size], axis=1)  # who comes first is chance
    events = np.array(pattern, np.int64)[turn]  # (N, M)
    first = (u[:, 0] * length).astype(np.int64)
    reach = max(float(times[-1] - times[0]), 2 * CLOSEST_S)
    far = CLOSEST_S * (reach / CLOSEST_S) ** (np.abs(2 * u[:, 1 + size :] - 1))
    when = times[first][:, None] + np.sign(u[:, 1 + size :] - 0.5) * far
    when[:, 0] = times[first]
    outside = (when < times[0]) | (when > times[-1])
    when = np.where(outside, 2 * times[first][:, None] - when, when).clip(times[0], times[-1])
    after = np.searchsorted(times, when).clip(1, length - 1)
    positions = np.where(when - times[after - 1] < times[after] - when, after - 1, after)
    positions[:, 0] = first
    positions = distinct(positions, length)
    return inserted(ids, positions, events), positions, events


def arrangement_index(
    backgrounds: Sequence[Background], placed: Sequence[tuple[Int64, Int64]], names: dict[str, int]
) -> EventIndex:
    """The inserted events of all arrangements as sequences of their own: (positions, events) per background."""
    times, events = [], []
    for background, (positions, what) in zip(backgrounds, placed, strict=True):
        order = np.argsort(positions, axis=1)
        times.append(background.times[np.take_along_axis(positions, order, axis=1)])
        events.append(np.take_along_axis(what, order, axis=1))
    flat_times, flat_events = np.concatenate(times), np.concatenate(events)
    offsets = np.arange(len(flat_events) + 1) * flat_events.shape[1]
    return EventIndex(offsets, flat_events.reshape(-1), flat_times.reshape(-1), names)


def route_of(pattern: Pattern, support: int, index: EventIndex, probs: Float64) -> Route | None:
    """The rule of a pattern from its arrangements; None when the label comes in hardly any of them."""
    names = {number: name for name, number in index.ids.items()}
    counts = Counter(names[event] for event in pattern)
    yes = probs > CUT
    events: list[Rule] = [AtLeast(Event(n), c) if c > 1 else Event(n) for n, c in counts.items()]
    if yes.mean() > 0.8 or len(counts) < 2:
        return Route(all_of(events), pattern, support, float(yes.mean())) if yes.mean() > CUT else None
    if yes.mean() < 0.04:
        return None
    chains, score = _best_chains(sorted(counts), index, yes)
    if score < 0.75:
        return Route(all_of(events), pattern, support, float(yes.mean())) if yes.mean() > CUT else None
    chained = {name for chain in chains for name in (chain.first.name, chain.second.name)}  # type: ignore[union-attr]
    rest: list[Rule] = [
        AtLeast(Event(n), c) if c > 1 else Event(n) for n, c in counts.items() if n not in chained or c > 1
    ]
    return Route(all_of([*chains, *rest]), pattern, support, score)


def _best_chains(names: list[str], index: EventIndex, yes: Bool) -> tuple[list[Then], float]:
    """One chain, or two if the second helps, that tell the arrangements with the label best."""
    chosen: list[Then] = []
    held, score = np.ones(len(yes), bool), 0.5
    for _ in range(2):
        options = []
        for first, second in permutations(names, 2):
            for window in (None, *USUAL_WINDOWS):
                chain = Then(Event(first), Event(second), window)
                options.append((_balanced(held & index.holds(chain), yes), window is None, chain))
        plain = max((o for o in options if o[1]), key=lambda o: o[0])
        best = max(options, key=lambda o: o[0])
        best = _middle_window(best, options) if best[0] > plain[0] + 0.05 else plain
        if best[0] < score + 0.05:
            break
        chosen.append(best[2])
        held, score = held & index.holds(best[2]), best[0]
    return chosen, score


def _middle_window(best: tuple[float, bool, Then], options: list[tuple[float, bool, Then]]) -> tuple[float, bool, Then]:
    """Of the windows that do about as well for the same order: the middle one."""
    pair = (best[2].first, best[2].second)
    close = [o for o in options if not o[1] and (o[2].first, o[2].second) == pair and o[0] >= best[0] - 0.01]
    return close[len(close) // 2]


def _balanced(said: Bool, yes: Bool) -> float:
    """Mean of the hit rates among arrangements with and without the label."""
    return float((said[yes].mean() + (~said[~yes]).mean()) / 2) if yes.any() and not yes.all() else 0.5
