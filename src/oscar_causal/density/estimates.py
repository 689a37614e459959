"""Memory of `train`, `check`, `report` and `serve` before they begin, and smaller pieces of work where it is short.

Each verb has one class of sizes with one `plan(cap)`: bytes by part beside the program and what is loaded already, and
how large a piece of work may be. Pieces go down in halves only where the cap asks for it (other sizes move the last
bits of sums); what cannot be made smaller is refused in one line. Figures per token, label and event are counts of the
numbers that exist together; tests hold them against measured peaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from oscar_causal.data.folders import finite_or_none
from oscar_causal.data.sequences import Int64
from oscar_causal.density.memory import GIB, TOKENS_PER_PASS, Work, bytes_per_token
from oscar_causal.density.next_event import CHUNK
from oscar_causal.density.objective import PREFIXES
from oscar_causal.density.quality import PREFIX_SEQUENCES
from oscar_causal.density.quality import PREFIXES as JUDGED_PREFIXES
from oscar_causal.density.shortlist import OFTEN, ORDERED, UNITS, WINDOWS
from oscar_causal.density.transformer import Network, NetworkConfig, padded_rows
from oscar_causal.errors import UsageError

PAIRED = 0.05
"""Share of (row, label) pairs with two types of the label's shortlist in the row, for which orders and times are
compared (synthetic fleets: 0.04 to 0.05)."""
LEAST_LOGITS = 16
"""Tokens whose next-event logits exist together, at least."""


@dataclass(frozen=True)
class TrainPieces:
    """How a step of training is cut where memory is short; None = not at all."""

    tokens: int | None = None
    """Tokens of a micro-batch: the losses and gradients of a step's micro-batches add up."""
    logits: int | None = None
    """Tokens whose next-event logits exist together."""
    held_out: int | None = None
    """Tokens of a pass over held-out sequences."""


@dataclass(frozen=True)
class Plan:
    """What a verb will take."""

    parts: Mapping[str, int]
    """Bytes by name."""
    cap: float
    pieces: Mapping[str, int]
    """What was made smaller: name -> size."""

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        return sum(self.parts.values())

    def to_json(self) -> dict[str, Any]:
        """In GiB, as `run.json` of a discovery run has it."""
        parts = {f"{name.replace(' ', '_')}_gib": value / GIB for name, value in self.parts.items()}
        total, cap = self.total / GIB, finite_or_none(self.cap / GIB)
        return {**parts, "total_gib": total, "cap_gib": cap, "smaller": dict(self.pieces)}

    def words(self) -> str:
        """One line."""
        parts = ", ".join(f"{name} {value / GIB:.2f}" for name, value in self.parts.items())
        most = f", at most {self.cap / GIB:.2f}" if np.isfinite(self.cap) else ""
        cut = ", ".join(WORDS[name].format(size) for name, size in self.pieces.items())
        short = f"; memory is short: {cut} at a time" if cut else ""
        return f"memory: about {self.total / GIB:.2f} GiB ({parts}){most}{short}"

    def check(self, what: str) -> Plan:
        """Itself, or an error in one line where it is more than the cap."""
        if self.total <= self.cap:
            return self
        parts = ", ".join(f"{name} {value / GIB:.2f}" for name, value in self.parts.items())
        raise UsageError(
            f"--memory: expected at least {self.total / GIB:.2f} GiB for {what} ({parts}), got {self.cap / GIB:.2f}"
        )


WORDS = {
    "tokens": "{:,} tokens of a batch",
    "logits": "next-event logits of {:,} tokens",
    "held_out": "{:,} tokens of held-out sequences",
    "tokens_per_pass": "{:,} tokens",
}
"""What is said of smaller pieces."""


@dataclass(frozen=True)
class TrainWork:
    """What decides how much memory training takes."""

    network: NetworkConfig
    lengths: Int64
    """Events of each training sequence, as they are read."""
    held_out: Int64
    """Events of each held-out sequence."""
    batch_tokens: int
    device: str = "cpu"
    fixed: bool = False
    """Steps cannot be cut: packed rows of a GPU have one shape, and several processes must agree."""

    def plan(self, cap: float) -> Plan:
        """The largest pieces, from the usual ones downwards in halves, that stay within `cap` bytes.

        Where steps are `fixed`, a batch that may not fit is told and not refused: half precision takes less.
        """
        pieces = TrainPieces()
        while (found := self.estimate(pieces, cap)).total > cap:
            smaller = self._smaller(pieces)
            if smaller is None:
                break
            pieces = smaller
        if self.fixed and found.parts["weights"] + found.parts["optimizer"] <= cap:
            return found
        return found.check(f"training with {self.network.events:,} event types and {self.network.labels:,} labels")

    def estimate(self, pieces: TrainPieces, cap: float = float("inf")) -> Plan:
        """Memory with pieces of these sizes."""
        weights = weight_bytes(self.network)
        kept = (2 * weights + weight_bytes(self.network, "shortlist.")) * bool(len(self.held_out))  # of the best looks
        parts = {
            "weights": weights,
            "optimizer": 3 * weights,  # gradients and two moments
            "copies": 2 * kept + 3 * weights,  # kept ones, and a checkpoint of them, of weights and moments
            "largest batch": max(sum(phase.values()) for phase in self._phases(pieces).values()),
        }
        return Plan(parts, cap, {name: size for name, size in asdict(pieces).items() if size is not None})

    def _phases(self, pieces: TrainPieces) -> dict[str, dict[str, int]]:
        """Bytes of a step, of a look at held-out sequences and of their judgement, by what can be made smaller."""
        network, labels = self.network, self.network.labels
        tables = 4 * 4 * padded_rows(network.events) * network.width + 2 * weight_bytes(network, "shortlist.")
        logits = pieces.logits or CHUNK
        tokens = pieces.tokens or self.batch_tokens
        passed = pieces.held_out or TOKENS_PER_PASS[self.device]
        step = _largest(self.lengths, tokens, step_bytes(network), (1 + PREFIXES) * label_bytes(network))
        held = (1 + PREFIXES) * label_bytes(network), JUDGED_PREFIXES * label_bytes(network)
        look, judge = (_largest(self.held_out, passed, bytes_per_token(network), each) for each in held)
        rows, early = len(self.held_out), min(len(self.held_out), PREFIX_SEQUENCES)
        return {
            "step": {
                "logits": 12 * min(logits, tokens, int((self.lengths + 1).sum())) * network.events,
                "tokens": step,
                "tables": tables,  # gradients of the largest ones, from all their ends, before they are added up
            },
            "look": {"logits": 8 * min(logits, passed, int(self.held_out.sum())) * network.events, "held_out": look},
            "judgement": {
                "held_out": judge,
                "answers": labels * (80 * rows if self.device == "cpu" else 0) + 36 * early * JUDGED_PREFIXES * labels,
            },
        }

    def _smaller(self, pieces: TrainPieces) -> TrainPieces | None:
        """The largest part of the largest phase in half; None where that is as small as it gets."""
        phase = max(self._phases(pieces).values(), key=lambda phase: sum(phase.values()))
        for name in sorted(phase, key=lambda name: -phase[name]):
            now, least = self._sizes(pieces).get(name, (0, 0))
            if now > least:
                return replace(pieces, **{name: max(least, now // 2)})
        return None

    def _sizes(self, pieces: TrainPieces) -> dict[str, tuple[int, int]]:
        """Sizes of pieces now, and the least ones."""
        tokens, passed = pieces.tokens or self.batch_tokens, pieces.held_out or TOKENS_PER_PASS[self.device]
        shortest = (int(lengths.min()) + 1 if len(lengths) else tokens for lengths in (self.lengths, self.held_out))
        fixed = {"logits": (min(pieces.logits or CHUNK, max(tokens, passed)), LEAST_LOGITS)}
        if self.fixed:
            return fixed
        return fixed | {"tokens": (tokens, next(shortest)), "held_out": (passed, next(shortest))}


@dataclass(frozen=True)
class CheckWork:
    """What decides how much memory `check` takes."""

    network: NetworkConfig
    weights: int
    """Bytes of all folds."""
    lengths: Int64
    """Events of each judged sequence, as they are read."""
    device: str = "cpu"
    trained: int = 0
    """Events that the logistic regression on presence is fitted on; 0 = it is left out."""

    def plan(self, cap: float) -> Plan:
        """The largest passes, from the usual ones downwards in halves, that stay within `cap` bytes."""
        tokens, least = TOKENS_PER_PASS[self.device], int(self.lengths.min(initial=0)) + 1
        while (found := self.estimate(tokens, cap)).total > cap and tokens > least:
            tokens //= 2
        return found.check(f"checking {len(self.lengths):,} sequences with {self.network.labels:,} labels")

    def estimate(self, tokens: int, cap: float = float("inf")) -> Plan:
        """Memory with passes of so many tokens."""
        labels, rows = self.network.labels, len(self.lengths)
        row = JUDGED_PREFIXES * label_bytes(self.network)
        parts = {
            "weights": self.weights,
            "probabilities": labels * (48 * rows + 36 * JUDGED_PREFIXES * min(rows, PREFIX_SEQUENCES)),
            "pairs of labels": 48 * labels**2,  # residuals that go together: six (Y, Y) in double precision
            "logistic regression": 100 * self.trained,  # the events encoded once more, and sparse matrices
            "largest pass": _largest(self.lengths, tokens, bytes_per_token(self.network), row),
        }
        return Plan(parts, cap, {} if tokens == TOKENS_PER_PASS[self.device] else {"tokens_per_pass": tokens})


@dataclass(frozen=True)
class ServeWork:
    """What decides how much memory `serve` takes at most: one thread answers, so the largest answer counts once."""

    work: Work
    """The largest explanation."""
    rows: int
    """Rows of predictions, each with all labels, that are held together."""
    dataset: int = 0
    """Bytes of the dataset."""

    def plan(self, cap: float, device: str) -> Plan:
        """The largest passes, from the usual ones downwards in halves, that stay within `cap` bytes."""
        usual = TOKENS_PER_PASS[device]
        tokens = usual
        while (found := self.estimate(tokens, cap, usual)).total > cap and tokens > self.work.length + 1:
            tokens //= 2
        network = self.work.network
        return found.check(f"serving {network.events:,} event types and {network.labels:,} labels")

    def estimate(self, tokens: int, cap: float, usual: int) -> Plan:
        """Memory with passes of so many tokens."""
        explanation = self.work.estimate(tokens)
        network, passed = self.work.network, max(tokens, self.work.length + 1)
        prediction = passed * (bytes_per_token(network) + label_bytes(network)) + 28 * self.rows * network.labels
        parts = {
            "weights": self.work.weights,
            "dataset": self.dataset,
            "largest answer": max(explanation.total - explanation.weights, prediction),
        }
        return Plan(parts, cap, {} if tokens == usual else {"tokens_per_pass": tokens})


@dataclass(frozen=True)
class ReportWork:
    """What decides how much memory `report` takes: rows of the results are Python objects while they are counted."""

    verdicts: int
    causes: int
    evidence: int
    """Rows of the results."""
    evidence_bytes: int
    """Of that table, unpacked."""
    shown: float
    """Share of the explained sequences with a page of their own."""
    events: int
    """Events of those sequences."""
    weights: int = 0
    dataset: int = 0

    def plan(self, cap: float) -> Plan:
        """The estimate, refused where it is more than `cap` bytes."""
        parts = {
            "weights": self.weights,
            "dataset": self.dataset,
            "results": 1400 * self.verdicts + 3400 * self.causes + 2 * self.evidence_bytes,
            "page": int(1000 * self.shown * (self.evidence + self.causes + self.verdicts)) + 300 * self.events,
        }
        what = (
            f"a page of {self.verdicts:,} explained pairs with {self.causes:,} causes (--limit shows fewer sequences)"
        )
        return Plan(parts, cap, {}).check(what)


@cache
def weight_bytes(network: NetworkConfig, part: str = "") -> int:
    """Bytes of a network's weights whose names begin with `part`, without making them."""
    with torch.device("meta"):
        state = Network(network).state_dict()
    return sum(tensor.nbytes for name, tensor in state.items() if name.startswith(part))


def step_bytes(network: NetworkConfig) -> int:
    """Bytes of one token in a step forward and back: every block keeps its inner states."""
    backbone = network.layers * (12 * network.width + 4 * network.hidden)
    again = 2 if network.label_form == "cross" else 1
    labels = network.label_layers * (12 * again * network.width + 4 * (network.label_hidden or network.hidden))
    return 4 * (backbone + labels + 6 * network.width + 300)


def label_bytes(network: NetworkConfig) -> int:
    """Bytes of all labels after one token, with or without gradients: what shortlists read off the events before it."""
    if not network.shortlist:
        return 32 * network.labels
    size = min(network.shortlist, network.events)
    ordered = min(ORDERED, size)
    pairs = PAIRED * ordered**2 * (4 + WINDOWS)
    each = 2 * (size + OFTEN * ordered) + 2 * (UNITS + 1) + pairs
    return int(4 * (network.labels * each + 3 * min(network.events, network.labels * size)))


def _largest(lengths: Int64, tokens: int, token: int, row: int) -> int:
    """Bytes of the costliest rectangle of at most `tokens` tokens: `token` for each, `row` for each sequence."""
    if not len(lengths):
        return 0
    widths, counts = np.unique(lengths + 1, return_counts=True)
    rows = np.minimum(np.cumsum(counts), np.maximum(1, tokens // widths))  # of this width at most
    return int((rows * (widths * token + row)).max())
