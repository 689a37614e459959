"""What an algorithm returns for one target, in columns of its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["parent", "child", "spouse", "undirected"]


@dataclass(frozen=True)
class Found:
    """A Markov boundary: columns in the order they were found, and what each is to the target where that was learnt."""

    members: tuple[int, ...]
    complete: bool
    """False when the time limit came first; the members are then what was found so far."""
    roles: Mapping[int, Role] = field(default_factory=dict)
