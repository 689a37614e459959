"""How labels follow from a whole sequence: the rules as a small machine that reads one event at a time.

A state holds what the rules can still ask about the past (counts up to the largest threshold, how far each `then` chain
has come). The label's probability depends on the last state alone, so sums over futures and over replacement draws run
over states instead of sequences. `A then B` asks for a strictly earlier timestamp: order inside a tie never decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oscar_causal.data.rules import And, AtLeast, Event, Not, Or, Rule, Then, parse
from oscar_causal.data.rules.tree import atoms, chain_steps, event_names
from oscar_causal.data.solvable.config import LabelLaw, SolvableConfig
from oscar_causal.data.solvable.law import FloatArray, IntArray
from oscar_causal.errors import UsageError

MAX_STATES = 20_000

_State = tuple[int, ...]
"""One count per counted symbol, then per chain: links matched before the running timestamp, links matched by now."""


@dataclass(frozen=True)
class Outcome:
    """The machine of all labels together. S states; the extra symbol K is a blank that no rule reacts to."""

    start: int
    """State of the empty sequence."""
    step: IntArray
    """step[tied, s, x]: state after symbol x; tied = x shares the timestamp of the symbol before, (2, S, K+1)."""
    probs: FloatArray
    """P(Y = 1 | driver state, last state), (D, S, Y)."""
    driven: IntArray
    """How often the hidden driver's event has occurred in each state (0 without a driver), (S,)."""


def build_outcome(config: SolvableConfig) -> Outcome:
    """Tabulate the labels of a process; rules that name foreign events or time windows are errors."""
    rules = [[_checked(effect.rule, label, config) for effect in label.effects] for label in config.labels]
    machine = _Machine(config, [rule for listed in rules for rule in listed])
    states, step = _tabulate(machine, config)
    driver_states = 1 if config.hidden is None else 2
    probs = np.empty((driver_states, len(states), len(config.labels)))
    for j, (label, listed) in enumerate(zip(config.labels, rules, strict=True)):
        holds = np.array(
            [[machine.holds(rule, state) for rule in listed] for state in states], dtype=float
        )  # (S, rules)
        direct = label.base + holds @ np.array([effect.size for effect in label.effects])
        probs[..., j] = direct + label.hidden * np.arange(driver_states)[:, None]
        _check_range(probs[..., j], label)
    driven = np.zeros(len(states), dtype=np.int64)
    if config.hidden is not None:
        driven[:] = [state[machine.place[config.hidden.event]] for state in states]
    return Outcome(0, step, probs.clip(0, 1), driven)


def parent_signs(outcome: Outcome, config: SolvableConfig, label: int) -> dict[int, int]:
    """The relevant symbols that a label's mechanism reacts to, each with its sign.

    A type is a parent if blanking all its occurrences changes P(Y | sequence, driver) of some sequence. Its sign is +1
    where its presence only ever raises that probability, -1 where it only ever lowers it, 0 where it does both.
    """
    signs = {}
    for symbol in range(len(config.events)):
        change = _changes(outcome, config, symbol, label)
        rises, falls = bool((change > 1e-12).any()), bool((change < -1e-12).any())
        if rises or falls:
            signs[symbol] = int(rises) - int(falls)
    return signs


def _changes(outcome: Outcome, config: SolvableConfig, symbol: int, label: int) -> FloatArray:
    """P(Y | sequence) - P(Y | sequence with the symbol blanked) for all pairs of last states, (D, pairs)."""
    _, states, width = outcome.step.shape
    reads = np.arange(width - 1)
    shown = np.where(reads == symbol, width - 1, reads)  # the blank stands last
    pairs = np.array([outcome.start * states + outcome.start])
    for i in range(config.length):
        step = outcome.step[int(i in config.tied)]
        full, blanked = pairs // states, pairs % states
        pairs = np.unique(step[full][:, reads] * states + step[blanked][:, shown])
    change: FloatArray = outcome.probs[:, pairs // states, label] - outcome.probs[:, pairs % states, label]
    return change


class _Machine:
    """Counters and chains, shared by all rules and stepped together."""

    def __init__(self, config: SolvableConfig, rules: Sequence[Rule]) -> None:
        caps: dict[str, int] = {}
        chains: dict[tuple[str, ...], None] = {}
        for atom, _ in (found for rule in rules for found in atoms(rule)):
            if isinstance(atom, Then):
                chains[chain_steps(atom)[0]] = None
            else:
                name, count = _threshold(atom)
                caps[name] = max(count, caps.get(name, 0))
        if config.hidden is not None:
            caps[config.hidden.event] = config.length
        ids = {name: symbol for symbol, name in enumerate(config.events)}
        self.counted = [(ids[name], cap) for name, cap in caps.items()]
        self.place = {name: place for place, name in enumerate(caps)}
        self.chains = [[ids[name] for name in chain] for chain in chains]
        self.chain_place = {chain: len(caps) + 2 * place for place, chain in enumerate(chains)}
        self.ties = bool(config.tied)
        self.start: _State = (0,) * (len(caps) + 2 * len(chains))

    def step(self, state: _State, symbol: int, *, tied: bool) -> _State:
        """The state after one more symbol."""
        parts = [min(cap, count + (symbol == own)) for (own, cap), count in zip(self.counted, state, strict=False)]
        for chain in self.chains:
            before, now = state[len(parts) : len(parts) + 2]
            before = before if tied else now
            if before < len(chain) and chain[before] == symbol:
                now = before + 1
            parts += [before if self.ties else now, now]
        return tuple(parts)

    def holds(self, rule: Rule, state: _State) -> bool:
        """Whether a rule is true of the sequences that end in this state."""
        match rule:
            case Not(inner):
                return not self.holds(inner, state)
            case And(items):
                return all(self.holds(item, state) for item in items)
            case Or(items):
                return any(self.holds(item, state) for item in items)
            case Then():
                chain, _ = chain_steps(rule)
                return state[self.chain_place[chain] + 1] == len(chain)
        name, count = _threshold(rule)
        return state[self.place[name]] >= count


def _threshold(atom: Event | AtLeast) -> tuple[str, int]:
    return (atom.event.name, atom.count) if isinstance(atom, AtLeast) else (atom.name, 1)


def _checked(text: str, label: LabelLaw, config: SolvableConfig) -> Rule:
    rule = parse(text)
    foreign = [name for name in event_names(rule) if name not in config.events]
    if foreign:
        raise UsageError(
            f"solvable process, label {label.name!r}, rule {text!r}: expected events among {config.events}, "
            f"got {foreign[0]!r}"
        )
    chains = [atom for atom, _ in atoms(rule) if isinstance(atom, Then)]
    if any(window is not None for chain in chains for window in chain_steps(chain)[1]):
        raise UsageError(f"solvable process, label {label.name!r}, rule {text!r}: expected no `within`, got one")
    return rule


def _tabulate(machine: _Machine, config: SolvableConfig) -> tuple[list[_State], IntArray]:
    """All states that any sequence can reach, the start first, and the steps between them."""
    blank = len(config.events) + (config.inert > 0)
    index = {machine.start: 0}
    states = [machine.start]
    rows: list[list[list[int]]] = []
    while len(rows) < len(states):
        row = []
        for tied in (False, True):
            after = [machine.step(states[len(rows)], x, tied=tied and machine.ties) for x in range(blank + 1)]
            for state in after:
                if state not in index:
                    index[state] = len(states)
                    states.append(state)
            row.append([index[state] for state in after])
        rows.append(row)
        if len(states) > MAX_STATES:
            raise UsageError(f"solvable process, labels: expected rules with at most {MAX_STATES} states, got more")
    return states, np.array(rows, dtype=np.int64).transpose(1, 0, 2).copy()  # (2, S, K+1)


def _check_range(probs: FloatArray, label: LabelLaw) -> None:
    low, high = float(probs.min()), float(probs.max())
    if low < -1e-12 or high > 1 + 1e-12:
        raise UsageError(
            f"solvable process, label {label.name!r}: expected probabilities between 0 and 1, got {low:g} to {high:g}"
        )
