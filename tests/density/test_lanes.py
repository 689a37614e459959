"""Lanes begin after what came before, and what follows waits for them; which lane a launch takes changes no bit."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from oscar_causal.density import compiled
from oscar_causal.density.compiled import CompiledNetwork, Launch, Question, full_launches
from oscar_causal.density.interface import Contexts
from oscar_causal.density.lanes import Lane, side_by_side
from oscar_causal.density.transformer import Network, NetworkConfig


class FakeStream:
    """Writes down for whom it waits."""

    device = torch.device("cuda")

    def __init__(self, name: str, told: list[str]) -> None:
        self.name, self.told = name, told

    def wait_stream(self, other: FakeStream) -> None:
        self.told.append(f"{self.name} waits for {other.name}")


@pytest.mark.parametrize("fails", [False, True])
def test_lanes_part_and_meet_again_even_after_an_error(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: FakeStream("main", told))
    lanes: list[Any] = [SimpleNamespace(stream=FakeStream(name, told)) for name in ("first", "second")]
    with suppress(ZeroDivisionError), side_by_side(lanes):
        told.append("work")
        if fails:
            raise ZeroDivisionError
    begin, end = [f"{name} waits for main" for name in ("first", "second")], ["main waits for first"]
    assert told == [*begin, "work", *end, "main waits for second"]


def test_without_a_gpu_a_lane_is_nothing() -> None:
    lane = Lane(torch.device("cpu"))
    with side_by_side([lane]), lane():
        assert lane.recorded(lambda: torch.ones(2))().sum() == 2


@pytest.mark.bits
def test_launches_take_turns_and_no_bit_depends_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    network = Network(NetworkConfig(40, 3, width=32, heads=2, layers=1, hidden=40)).eval().requires_grad_(False)
    questions = []
    for length in (9, 10, 22):
        contexts = Contexts(torch.randint(3, 40, (7, length)), torch.arange(length).double(), torch.zeros(length, 0))
        questions.append(Question(contexts, torch.tensor([0, 2]), torch.tensor([length])))
    monkeypatch.setattr(compiled, "LAUNCH_TOKENS", {"end": 96, "along": 96, "events": 96})
    used: list[Launch] = []
    run = Launch.run
    monkeypatch.setattr(Launch, "run", lambda self: (used.append(self), run(self))[1])
    two = CompiledNetwork(network, torch.float32)
    answers = two.label_logits(questions)
    lanes = [[launches.index(launch) for launches in two._launches.values() if launch in launches] for launch in used]
    assert lanes == [[k % 2] for k in range(len(used))]
    assert len(used) > 4
    monkeypatch.setattr(compiled, "LANES", 1)
    for first, second in zip(answers, CompiledNetwork(network, torch.float32).label_logits(questions), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("chunk", [None, 4])
def test_launches_hold_every_row_once_and_are_full(chunk: int | None) -> None:
    counts = {0: 5, 3: 1, 4: 17, 9: 0}
    launches = list(full_launches(counts, 8, chunk))
    rows = [(piece.batch, row) for pieces in launches for piece in pieces for row in range(8 * 9)[piece.rows]]
    assert rows == [(batch, row) for batch, number in counts.items() for row in range(number)]
    for pieces in launches:
        assert [piece.place.start for piece in pieces] == [0, *(piece.place.stop for piece in pieces[:-1])]
        assert all(piece.place.stop - piece.place.start == piece.rows.stop - piece.rows.start for piece in pieces)
    filled = [pieces[-1].place.stop for pieces in launches[:-1]]
    assert all(number == 8 if chunk is None else number + chunk > 8 for number in filled)
