"""True effects: of replacing event types in one sequence (on P(Y | whole sequence)), and of the process's own `do`.

A context replaces some of the sequence's event types at all their occurrences. Replacements are drawn position by
position from a law Q, with the context's masked types left out and the rest renormalised. `tau_t(r, Q)` compares
contexts that kept t with contexts that replaced it, every other type being replaced independently with probability r.

What tau is not: a draw may *insert* a cause that the sequence lacks, so a type without any influence has tau = 0 only
where Q cannot bring in an absent parent (all parents present, or an inert Q). The label is P(Y | whole sequence) as the
best possible model sees it; with a hidden driver that is no mechanism, and a driven event shows a tau without being a
parent. `total_effect` asks the process itself instead.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oscar_causal.data.solvable.law import FloatArray, IntArray
from oscar_causal.data.solvable.tables import Tables
from oscar_causal.errors import UsageError

MAX_TYPES = 16
"""Most distinct types in a sequence whose mask patterns are enumerated (2 ** types of them)."""

_CHUNK_CELLS = 4_000_000


def masked_label_probs(
    tables: Tables, sequence: IntArray, types: IntArray, masks: npt.NDArray[np.bool_], law: FloatArray
) -> FloatArray:
    """E[P(Y | context)] for each mask pattern, replacement draws summed out, (M, Y).

    `types` (T,) are the types that can be masked, `masks` (M, T) is True where replaced, `law` (L, V) is Q.
    """
    final = tables.label_probs[-1][0]  # (S, Y)
    chunk = max(1, _CHUNK_CELLS // final.size)
    parts = [
        _label_probs_of(tables, _context_laws(tables, sequence, types, masks[at : at + chunk], law), final)
        for at in range(0, len(masks), chunk)
    ]
    return np.concatenate(parts)


def _context_laws(
    tables: Tables, sequence: IntArray, types: IntArray, masks: npt.NDArray[np.bool_], law: FloatArray
) -> FloatArray:
    """What stands at each position of a context with each mask pattern, as probabilities of symbols, (M, L, K)."""
    excluded = np.zeros((len(masks), law.shape[-1]), dtype=bool)  # (M, V)
    excluded[:, types] = masks
    observed = np.eye(tables.symbols)[tables.lump(sequence)]  # (L, K)
    laws = np.empty((len(masks), *observed.shape))
    for i, own in enumerate(sequence):
        allowed = np.where(excluded, 0.0, law[i])  # (M, V)
        total = allowed.sum(axis=-1, keepdims=True)
        replaced = excluded[:, [own]]
        if (replaced & (total <= 0)).any():
            raise UsageError(f"replacement law, position {i}: expected some mass outside the masked types, got none")
        drawn = tables.lump_probs(allowed) / np.where(total > 0, total, 1)
        laws[:, i] = np.where(replaced, drawn, observed[i])
    return laws


def _label_probs_of(tables: Tables, laws: FloatArray, final: FloatArray) -> FloatArray:
    """E[P(Y | sequence)] with each position drawn on its own from laws (M, L, K), by a sum over states, (M, Y)."""
    value = np.broadcast_to(final, (len(laws), *final.shape))  # (M, S, Y)
    for i in reversed(range(laws.shape[1])):
        step = tables.state_step[i]
        value = sum(
            (laws[:, i, x, None, None] * value[:, step[:, x]] for x in range(tables.symbols) if laws[:, i, x].any()),
            start=np.zeros(()),
        )
    start: FloatArray = value[:, tables.outcome.start]
    return start


def tau(tables: Tables, sequence: IntArray, r: float, law: FloatArray) -> tuple[IntArray, FloatArray]:
    """tau_t(r, Q) of every type present, by enumerating all mask patterns: types (T,), effects (T, Y)."""
    types = np.unique(sequence)
    if len(types) > MAX_TYPES:
        raise UsageError(f"direct effects: expected at most {MAX_TYPES} distinct types in a sequence, got {len(types)}")
    masks = (np.arange(2 ** len(types))[:, None] >> np.arange(len(types))) & 1 == 1  # (2^T, T)
    probs = masked_label_probs(tables, sequence, types, masks, law)  # (2^T, Y)
    weights = np.where(masks, r, 1 - r).prod(axis=1)  # (2^T,)
    replaced = (weights[:, None] * masks).T @ probs / r  # (T, Y)
    kept = (weights[:, None] * ~masks).T @ probs / (1 - r)
    return types, kept - replaced


def removal_effect(tables: Tables, sequence: IntArray, removed: IntArray, law: FloatArray) -> FloatArray:
    """P(Y | sequence) - E[P(Y | only these types replaced)], (Y,)."""
    masks = np.array([[False] * len(removed), [True] * len(removed)])
    intact, without = masked_label_probs(tables, sequence, removed, masks, law)
    effect: FloatArray = intact - without
    return effect


def step_effect(tables: Tables, position: int, event_id: int, reference: int | None) -> FloatArray:
    """E[Y | do(x_i = event)] - E[Y | do(x_i = reference)], the past drawn and the future regenerated, (Y,).

    Without a reference the second arm draws x_i from the process, this one type left out.
    """
    effect = np.zeros(len(tables.config.labels))
    symbol = int(tables.lump(np.array(event_id)))
    for driver, share in enumerate(tables.law.driver):
        mass = next(mass for i, mass in enumerate(tables.masses(driver)) if i == position)  # (H_i, S)
        values = tables.values_by_driver[position + 1][driver]  # (H_{i+1}, S, Y)
        contrast = -_other_arm(tables, tables.law.probs[position][driver], event_id, reference)  # (H_i, K)
        contrast[:, symbol] += 1
        for x in range(tables.symbols):
            gain = contrast[:, x, None, None] * tables.after(position, x, values)  # (H_i, S, Y)
            effect += share * np.einsum("hs,hsy->y", mass, gain)
    return effect


def _other_arm(tables: Tables, probs: FloatArray, event_id: int, reference: int | None) -> FloatArray:
    """What stands at the position when the event is kept out of it, (H_i, K)."""
    types = tables.spread(probs)  # (H_i, V)
    if reference is None:
        types[:, event_id] = 0
    else:
        types = np.zeros_like(types)
        types[:, reference] = 1
    return tables.lump_probs(types / types.sum(axis=1, keepdims=True))
