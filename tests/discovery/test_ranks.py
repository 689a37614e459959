"""Processes of one run: alone they are the first; when the first is refused, all stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oscar_causal.discovery.ranks import Ranks, join_ranks
from oscar_causal.errors import FolderError, UsageError


def refused() -> None:
    raise FolderError("in the way")


def test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    ranks = join_ranks()
    assert (ranks.rank, ranks.world) == (0, 1)
    assert ranks.first(lambda: "acted") == "acted"
    ranks.wait()
    with pytest.raises(FolderError, match="in the way"):
        ranks.first(refused)


def test_each_process_of_a_machine_has_its_own_gpu() -> None:
    assert Ranks(5, 8, 1).device("cuda") == "cuda:1"
    assert Ranks(5, 8, 1).device("cpu") == "cpu"
    assert Ranks().device("cuda") == "cuda"


def told(answer: Callable[[bool], bool]) -> Any:
    """What the first process says, without processes; those are in tests/faults."""

    class Told(Ranks):
        def _told(self, stop: bool) -> bool:
            return answer(stop)

    return Told


def test_the_others_wait_for_the_first_and_do_not_act() -> None:
    assert told(lambda _: False)(1, 2).first(refused) is None
    with pytest.raises(UsageError, match="the first process was refused"):
        told(lambda _: True)(1, 2).first(refused)
    with pytest.raises(FolderError, match="in the way"):
        told(lambda stop: stop)(0, 2).first(refused)
