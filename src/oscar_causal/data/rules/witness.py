"""A search for one sequence in which two rules differ: proof that they are not the same.

Used where logic alone cannot tell (chains that share events). Finding nothing proves nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscar_causal.data.rules.evaluate import evaluate
from oscar_causal.data.rules.index import EventIndex
from oscar_causal.data.rules.tree import And, AtLeast, Rule, Then, atom_names, atoms, chain_steps, event_names

MAX_SEQUENCES = 4096
MAX_LENGTH = 64


def differ_somewhere(a: Rule, b: Rule) -> bool:
    """Whether some sequence was found in which exactly one of the rules holds. The search is the same every time.

    >>> from oscar_causal.data.rules import parse
    >>> differ_somewhere(parse("A then B"), parse("A then B within 60s"))
    True
    """
    index = _varied_sequences(And((a, b)))
    return bool((evaluate(a, index) != evaluate(b, index)).any())


def _varied_sequences(rule: Rule) -> EventIndex:
    """Random sequences of the rule's events, with gaps around its windows and lengths around its demands."""
    rng = np.random.default_rng(0)
    names = event_names(rule)
    count = min(MAX_SEQUENCES, 1 + 2**22 // len(names))
    lengths = rng.integers(1, _longest(rule) + 1, count)
    sequence_of = np.repeat(np.arange(count), lengths)
    favourites = rng.permuted(np.tile(np.arange(len(names)), (count, 1)), axis=1)  # (sequences, names)
    kinds = rng.integers(1, len(names) + 1, count)
    picks = (rng.random(len(sequence_of)) * kinds[sequence_of]).astype(np.int64)
    gaps = rng.choice(_gaps(rule), len(sequence_of))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    times = np.cumsum(gaps)
    times -= times[offsets[:-1]][sequence_of]
    return EventIndex(offsets, favourites[sequence_of, picks], times, {name: i for i, name in enumerate(names)})


def _longest(rule: Rule) -> int:
    demands = sum(atom.count if isinstance(atom, AtLeast) else len(atom_names(atom)) for atom, _ in atoms(rule))
    return min(MAX_LENGTH, 1 + demands)


def _gaps(rule: Rule) -> npt.NDArray[np.float64]:
    windows = {w for atom, _ in atoms(rule) if isinstance(atom, Then) for w in chain_steps(atom)[1] if w is not None}
    around = [factor * window for window in sorted(windows) for factor in (0.5, 1.0, 1.25)]
    return np.array([0.0, *around, 2 * max(windows, default=0.0) + 1.0])
