"""Bounded memory of a discovery run: what it will take, what there is, and how large a piece of work may be.

Answers are asked in pieces of at most so many tokens. The size of a piece changes the last bits of a product, so it is
a fixed number for each kind of device, goes down in halves only where a cap asks for it, and is recorded with the run.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from oscar_causal.density.shortlist import input_count
from oscar_causal.density.transformer import NetworkConfig
from oscar_causal.errors import UsageError

TOKENS_PER_PASS = {"cpu": 8192, "cuda": 1 << 17}
"""Tokens of one forward pass; N contexts of a sequence are cut into pieces of at most this size."""
FREE_SHARE = 0.7
"""Share of the free memory that a run takes at most unless told otherwise."""
LAW_BYTES = 40
"""Per entry of the (L, V) replacement law: itself, its running sums, and what is made on the way or beside them."""
ANSWER_BYTES = 48
"""Per P(label) along a sequence: a single and five double precision numbers while they are summed up."""
GIB = 1 << 30


@dataclass
class Pieces:
    """How many rows of a sequence's contexts go through the network at once; fewer after it ran out of memory."""

    tokens: int | None = None
    """Most tokens of a pass; None = the device's own number."""
    short: int | None = None
    """Rows of the smallest piece that was taken because memory was short; None = it never was."""

    def rows(self, length: int, device: str) -> int:
        """Rows of `length` tokens that make a piece on this kind of device."""
        planned = max(1, (self.tokens or TOKENS_PER_PASS[device]) // length)
        return planned if self.short is None else min(planned, self.short)

    def halve(self, rows: int) -> None:
        """Remember that so many rows were too many."""
        self.short = max(1, rows // 2)


@dataclass(frozen=True)
class Estimate:
    """Bytes that one process of a run takes beside the program itself (some 0.3 GiB) and its dataset."""

    weights: int
    law: int
    activations: int
    slopes: int
    answers: int
    tokens_per_pass: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.law + max(self.activations, self.slopes) + self.answers

    def to_json(self) -> dict[str, float | int]:
        """For `run.json`, in GiB."""
        parts = {f"{name}_gib": value / GIB for name, value in asdict(self).items() if name != "tokens_per_pass"}
        return {**parts, "total_gib": self.total / GIB, "tokens_per_pass": self.tokens_per_pass}


@dataclass(frozen=True)
class Work:
    """What decides how much memory a run takes."""

    network: NetworkConfig
    weights: int
    """Bytes of all networks."""
    length: int
    """Events of the longest sequence."""
    contexts: int
    sloped: int = 0
    """Most labels whose slopes are taken in one sequence: a pass forward and back for each."""
    labels_along: int = 0
    """Labels whose probabilities are asked along the whole sequence in every context (0 = at its end only)."""

    def estimate(self, tokens_per_pass: int) -> Estimate:
        """Memory with pieces of this size."""
        tokens = min(self.contexts * (self.length + 1), max(tokens_per_pass, self.length + 1))
        return Estimate(
            weights=self.weights,
            law=LAW_BYTES * self.length * self.network.events,
            activations=tokens * (bytes_per_token(self.network) + self._shortlist_bytes()),
            slopes=min(self.sloped, max(1, tokens_per_pass // (self.length + 1)))
            * slope_bytes(self.network, self.length),
            answers=ANSWER_BYTES * min(self.contexts * self.length * self.labels_along, 1 << 22),
            tokens_per_pass=tokens_per_pass,
        )

    def _shortlist_bytes(self) -> int:
        """Bytes a token where labels are asked along the sequence: its past, and what each shortlist reads off it."""
        if not self.labels_along or not self.network.shortlist:
            return 0
        return 80 * self.length + 20 * self.labels_along * input_count(self.network.shortlist)


def bytes_per_token(network: NetworkConfig) -> int:
    """Bytes of one token in a forward pass without gradients, at the widest place of a block.

    Attention holds about sixteen vectors of width D (streams, queries, keys and values, plain and turned), the
    feed-forward layer four of its inner width, and the waves of times and channels some 300 numbers.
    """
    inner = max(network.hidden, network.label_hidden)
    return 4 * (16 * network.width + 4 * inner + 300)


def slope_bytes(network: NetworkConfig, length: int) -> int:
    """Bytes of one sequence's pass forward and back: every block keeps its inner states and its attention."""
    blocks = network.layers + network.label_layers * (2 if network.label_form == "cross" else 1)
    inner = max(network.hidden, network.label_hidden)
    tokens = length + 1
    return 4 * tokens * (blocks * (18 * network.width + 6 * inner + 4 * network.heads * tokens) + 300)


def plan(work: Work, *, cap: float, device: str) -> Estimate:
    """The largest piece, from the device's own downwards in halves, with which the work stays within `cap` bytes."""
    kind = device.split(":")[0]
    tokens = TOKENS_PER_PASS[kind]
    while work.estimate(tokens).total > cap and tokens > work.length + 1:
        tokens //= 2
    found = work.estimate(tokens)
    if found.total > cap:
        raise UsageError(
            f"--memory: expected at least {found.total / GIB:.2f} GiB for one context of {work.length} events "
            f"(weights {found.weights / GIB:.2f}, replacement law {found.law / GIB:.2f}), got {cap / GIB:.2f}"
        )
    return found


def cap_bytes(gib: float | None, device: str, *, sharing: int = 1) -> float:
    """Most bytes that one process may take: `gib` (--memory), or its part of a share of what is free."""
    if gib is not None and not gib > 0:
        raise UsageError(f"--memory: expected a number of GiB above 0, got {gib}")
    if gib is None:
        return FREE_SHARE * free_bytes(device) / sharing
    room = None if device.startswith("cuda") else _address_room()
    return gib * GIB if room is None else min(gib * GIB, room)


def free_bytes(device: str) -> int:
    """Memory that is free on a device; on the CPU what the system calls available, within the limits of a container
    and of `ulimit -v`.
    """
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    free = _available() or os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, used = (_number(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    free = free if limit is None or used is None else min(free, max(0, limit - used))
    room = _address_room()
    return free if room is None else min(free, room)


def _address_room() -> int | None:
    """Bytes of address space that `ulimit -v` still leaves to this process; None = no limit."""
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _number(Path("/proc/self/statm"))
    return None if limit == resource.RLIM_INFINITY or used is None else max(0, limit - used * resource.getpagesize())


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return found[0] if found else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):  # no such limit
        return None
