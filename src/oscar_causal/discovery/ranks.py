"""Processes that torchrun started for one run of `oscar discover`: who does which shards, and who opens and finishes.

They exchange nothing but "go on" and "stop"; the results meet in the folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from oscar_causal.errors import OscarError, UsageError

T = TypeVar("T")
PATIENCE = timedelta(days=30)
"""How long a process waits for a slower one. torchrun ends all of them as soon as one has died."""


@dataclass(frozen=True)
class Ranks:
    """This process's place among those of the run; `Ranks()` is a run of one process."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1
    """Processes on this machine."""

    def device(self, wanted: str) -> str:
        """Each process of a machine has a GPU of its own."""
        return f"cuda:{self.local_rank}" if wanted == "cuda" and self.world > 1 else wanted

    def wait(self) -> None:
        """Go on when all processes have come here."""
        if self.world > 1:
            import torch.distributed

            torch.distributed.barrier()

    def first(self, act: Callable[[], T]) -> T | None:
        """Let the first process act; None for the others. When it is refused, all stop."""
        result, refusal = None, None
        if self.rank == 0:
            try:
                result = act()
            except OscarError as error:
                refusal = error
        if self._told(refusal is not None) and refusal is None:
            raise UsageError("the first process was refused; see its message")
        if refusal is not None:
            raise refusal
        return result

    def _told(self, stop: bool) -> bool:
        """What the first process says, in all processes."""
        if self.world == 1:
            return stop
        import torch

        flag = torch.tensor([float(stop)])
        torch.distributed.broadcast(flag, 0)
        return bool(flag.item())


def join_ranks() -> Ranks:
    """This process among those that torchrun started (RANK, WORLD_SIZE, LOCAL_RANK), or alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1 or "RANK" not in os.environ:
        return Ranks()
    import torch.distributed

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", timeout=PATIENCE)
    local, beside = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return Ranks(torch.distributed.get_rank(), torch.distributed.get_world_size(), local, beside)
