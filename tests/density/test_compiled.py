"""Launches of fixed shapes: the network's own answers, and the same bits in any company."""

from __future__ import annotations

import pytest
import torch

from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density import compiled
from oscar_causal.density.compiled import CompiledNetwork, Question
from oscar_causal.density.interface import Contexts
from oscar_causal.density.labels import Calibration
from oscar_causal.density.many_slopes import SlopeQuestion, slopes_together
from oscar_causal.density.memory import Pieces
from oscar_causal.density.model import OscarModel
from oscar_causal.density.transformer import Network, NetworkConfig

SHAPES = [(5, 20), (40, 31), (3, 31), (1, 30), (70, 33), (7, 4)]


@pytest.fixture(scope="module")
def model() -> OscarModel:
    generator = torch.Generator().manual_seed(3)
    network = Network(NetworkConfig(60, 6, channels=1, width=32, heads=2, layers=2, hidden=48, shortlist=7)).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    network.requires_grad_(False)
    vocabulary = Vocabulary(tuple(f"e{k}" for k in range(57)), tuple("uvwxyz"))
    calibration = Calibration((0.5, 1.0, 2.0, 1.5, 1.0, 0.7), (0.1, 0.0, -0.3, 0.2, 0.5, 0.0))
    return OscarModel(network, vocabulary, ("mileage",), max_length=64, min_context=2, calibration=calibration)


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    generator = torch.Generator().manual_seed(0)
    found = []
    for rows, length in SHAPES:
        ids = torch.randint(3, 60, (rows, length), generator=generator)
        times = torch.rand(length, generator=generator).double().cumsum(0) * 1000
        mileage = torch.randn(length, 1, generator=generator)
        mileage[::3] = torch.nan
        own = torch.randn(rows, length, 1, generator=generator)  # as where each context replaces other events
        contexts = Contexts(ids, times, own.masked_fill(own > 1, torch.nan) if rows % 2 else mileage)
        found.append(Question(contexts, torch.tensor([0, 3]), torch.tensor([length])))
        found.append(Question(contexts, torch.tensor([1]), torch.arange(2, length + 1)))
        found.append(Question(contexts, torch.tensor([5, 2]), torch.tensor([length // 2])))
    return found


def test_answers_are_those_of_the_model(model: OscarModel, questions: list[Question]) -> None:
    together = model.compiled(torch.float32).label_probs_together(questions)
    for question, answer in zip(questions, together, strict=True):
        alone = model.label_probs(question.contexts, question.labels, question.positions)
        assert answer.shape == alone.shape
        assert torch.allclose(answer, alone, atol=1e-5)


@pytest.mark.bits
def test_company_and_order_change_no_bit(model: OscarModel, questions: list[Question]) -> None:
    fast = CompiledNetwork(model.network, torch.float32)
    together = fast.label_logits(questions)
    backwards = fast.label_logits(questions[::-1])[::-1]
    for question, first, second in zip(questions, together, backwards, strict=True):
        assert torch.equal(first, second)
        assert torch.equal(first, fast.label_logits([question])[0])


def test_half_precision_is_near(model: OscarModel, questions: list[Question]) -> None:
    exact = CompiledNetwork(model.network, torch.float32).label_logits(questions)
    half = CompiledNetwork(model.network, torch.float16).label_logits(questions)
    first, second = (torch.cat([part.flatten() for part in parts]) for parts in (exact, half))
    assert 0 < (first - second).std() < 0.01 * first.std()  # another precision, the same network


@pytest.mark.bits
def test_event_laws_are_those_of_the_model(model: OscarModel, questions: list[Question]) -> None:
    fast = model.compiled(torch.float32)
    sequences = [question.contexts.rows(slice(0, 1)) for question in questions]
    for sequence, law in zip(sequences, fast.event_probs_together(sequences), strict=True):
        assert torch.allclose(law, model.event_probs(sequence), atol=1e-6)
        assert torch.equal(law, fast.event_probs(sequence))
    contexts = [question.contexts for question in questions]
    for part, logp in zip(contexts, fast.event_logp_together(contexts), strict=True):
        assert torch.allclose(logp, model.event_logp(part), atol=1e-4)


@pytest.mark.bits
def test_half_precision_leaves_the_law_of_replacements_alone(model: OscarModel, questions: list[Question]) -> None:
    sequences = [question.contexts.rows(slice(0, 1)) for question in questions]
    exact, half = (model.compiled(dtype).event_probs_together(sequences) for dtype in (torch.float32, torch.float16))
    for first, second in zip(exact, half, strict=True):
        assert torch.equal(first, second)


def test_out_of_memory_makes_smaller_launches(
    model: OscarModel, questions: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = CompiledNetwork(model.network, torch.float32).label_logits(questions)
    run = compiled.Launch.run

    def scarce(self: compiled.Launch) -> torch.Tensor:
        if len(self.asked) > 20:
            raise torch.OutOfMemoryError("no room")
        return run(self)

    monkeypatch.setattr(compiled.Launch, "run", scarce)
    pieces = Pieces()
    answers = CompiledNetwork(model.network, torch.float32, pieces=pieces).label_logits(questions)
    assert pieces.short is not None
    assert pieces.short <= 20
    for first, second in zip(whole, answers, strict=True):
        assert torch.allclose(first, second, atol=1e-4)
    monkeypatch.setattr(compiled.Launch, "run", lambda self: (_ for _ in ()).throw(torch.OutOfMemoryError("never")))
    with pytest.raises(torch.OutOfMemoryError):
        CompiledNetwork(model.network, torch.float32).label_logits(questions)


@pytest.mark.bits
def test_slopes_together_are_those_of_one_sequence(model: OscarModel, questions: list[Question]) -> None:
    generator = torch.Generator().manual_seed(1)
    asked = []
    for k, question in enumerate(questions):
        sequence = question.contexts.rows(slice(0, 1))
        law = torch.rand(sequence.event_ids.shape[1], 60, generator=generator).double()
        law = law / law.sum(-1, keepdim=True)
        asked.append(SlopeQuestion(sequence, question.labels, law, (0.4, 0.1) if k % 2 else (0.4,)))
    fast = CompiledNetwork(model.network, torch.float32)
    together = slopes_together(fast, asked)
    backwards = slopes_together(fast, asked[::-1])[::-1]
    for question, slopes, again in zip(asked, together, backwards, strict=True):
        alone = model.label_slopes(question.sequence, question.labels, question.law, question.shares)
        assert slopes.shape == alone.shape
        assert torch.allclose(slopes, alone, atol=1e-5 * float(alone.abs().max()) + 1e-6)
        assert torch.equal(slopes, again)
