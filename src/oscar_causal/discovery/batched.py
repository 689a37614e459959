"""Many sequences at once: each is explained as if it were alone, and what they ask of the model is answered together.

The estimators stay as they are, one sequence at a time (`crew`). The model they meet (`Proxy`) collects questions;
those of a team go through the network in launches of fixed shapes (`density.compiled`). Which sequences ask together
changes no bit of any answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.compiled import Question
from oscar_causal.density.folds import MeanModel
from oscar_causal.density.interface import Contexts
from oscar_causal.density.many_slopes import SlopeQuestion
from oscar_causal.density.memory import Pieces
from oscar_causal.density.model import OscarModel
from oscar_causal.discovery.crew import Ask, Ticket, work_together
from oscar_causal.discovery.subject import Variants, build_contexts, label_question

IN_FLIGHT, MOST_IN_FLIGHT = 64, 256
"""Long sequences under study at the same time, and the most of any length."""
IN_FLIGHT_EVENTS = IN_FLIGHT * 150
"""Events that those under study hold, at least: fewer short sequences would not fill a launch."""
LAWS_BYTES = 3 << 30
"""Room for their replacement laws (L, V): a single and a double precision number an entry, and one more on the way."""

Models = Sequence[Any]
"""An `OscarModel` or the mean of several, or proxies of them: the one that judges, then those that are asked too."""
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(eq=False)
class Asked:
    """A question to one model."""

    model: OscarModel
    kind: str
    """Name of the method of the proxy."""
    arguments: tuple[Any, ...]
    pieces: Pieces


@dataclass(eq=False)
class Proxy:
    """A model as one sequence meets it: the same answers, made together with those for other sequences."""

    model: OscarModel
    ask: Ask
    pieces: Pieces = field(default_factory=Pieces)
    """Of this sequence: says whether memory was short while its questions were answered."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of events and labels."""
        return self.model.vocabulary

    @property
    def channels(self) -> tuple[str, ...]:
        """Numeric channels the model reads."""
        return self.model.channels

    @property
    def max_length(self) -> int:
        """Longest sequence (in events) the model takes."""
        return self.model.max_length

    @property
    def min_context(self) -> int:
        """Fewest events after which label probabilities mean something."""
        return self.model.min_context

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events): (N, P, Y')."""
        return self._ask("label_probs", contexts, labels, positions)

    def responses(self, variants: Variants, labels: Tensor) -> Tensor:
        """P(label) after the last event of contexts that are built together too: (N, 1, Y')."""
        return self._ask("responses", variants, labels)

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v | events before i) at every position: (L, V)."""
        return self._ask("event_probs", sequence)

    def event_logp(self, contexts: Contexts) -> Tensor:
        """log P of the event that stands at each position given those before: (N, L), in nats."""
        return self._ask("event_logp", contexts)

    def label_slopes(self, sequence: Contexts, labels: Tensor, law: Tensor, shares: Sequence[float]) -> Tensor:
        """How fast the log odds of each label fall as each event fades into its law: (S, L, Y')."""
        return self._ask("label_slopes", sequence, labels, law, shares)

    def _ask(self, kind: str, *arguments: Any) -> Tensor:
        answer: Tensor = self.ask(Asked(self.model, kind, arguments, self.pieces))
        return answer


def explain_together(
    explain: Callable[[Models, Item], Result],
    models: Models,
    items: Sequence[Item],
    *,
    in_flight: int,
) -> list[Result]:
    """`[explain(models, item) for item in items]`, `in_flight` of them at a time.

    The first item that fails, by its place, ends the work with its error.
    """

    def job(ask: Ask, item: Item) -> Result:
        return explain([_proxy(model, ask) for model in models], item)

    return work_together(job, items, answer_all, in_flight=in_flight)


def _proxy(model: OscarModel | MeanModel, ask: Ask) -> Any:
    if isinstance(model, MeanModel):
        return MeanModel(tuple(Proxy(part, ask) for part in model.models))  # type: ignore[misc]
    return Proxy(model, ask)


def answer_all(tickets: Sequence[Ticket]) -> Callable[[], None]:
    """Answer every ticket, those of one kind to one model together. All but laws go to the host, in one copy."""
    _build_contexts([ticket for ticket in tickets if ticket.question.kind == "responses"])
    groups: dict[tuple[int, str], list[Ticket]] = {}
    for ticket in tickets:
        if ticket.error is None:
            groups.setdefault((id(ticket.question.model), ticket.question.kind), []).append(ticket)
    for group in groups.values():
        _answer_group(group)
    bound = [ticket for ticket in tickets if ticket.error is None and ticket.question.kind != "event_probs"]
    parcel = Parcel([ticket.answer for ticket in bound])

    def arrive() -> None:
        for ticket, answer in zip(bound, parcel.open(), strict=True):
            ticket.answer = answer

    return arrive


def _build_contexts(tickets: list[Ticket]) -> None:
    """Make of questions about variants of sequences questions about contexts."""
    try:
        built = build_contexts([ticket.question.arguments[0] for ticket in tickets])
    except Exception as error:  # each that asked gets it
        for ticket in tickets:
            ticket.error = error
        return
    for ticket, contexts in zip(tickets, built, strict=True):
        _, labels = ticket.question.arguments
        ticket.question.kind, ticket.question.arguments = "label_probs", label_question(contexts, labels)


def _answer_group(group: list[Ticket]) -> None:
    model, kind = group[0].question.model, group[0].question.kind
    model.pieces.short = None
    try:
        answers = _answer(model, kind, [ticket.question.arguments for ticket in group])
    except Exception as error:  # each that asked gets it
        for ticket in group:
            ticket.error = error
        return
    for ticket, answer in zip(group, answers, strict=True):
        ticket.answer = answer
        if model.pieces.short is not None:
            pieces = ticket.question.pieces
            pieces.short = min(pieces.short or model.pieces.short, model.pieces.short)


def _answer(model: OscarModel, kind: str, questions: list[tuple[Any, ...]]) -> list[Tensor]:
    if kind == "label_probs":
        return model.label_probs_together([Question(*question) for question in questions])
    if kind == "event_probs":
        return model.event_probs_together([sequence for (sequence,) in questions])
    if kind == "event_logp":
        return model.event_logp_together([contexts for (contexts,) in questions])
    return model.label_slopes_together([SlopeQuestion(*question) for question in questions])


class Parcel:
    """Tensors of one kind on their way to the host in one copy, which the host does not wait for until it opens it."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors, self._sent = list(tensors), None
        if tensors and tensors[0].is_cuda:
            flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
            self._host = torch.empty(flat.shape, dtype=flat.dtype, pin_memory=True)
            self._host.copy_(flat, non_blocking=True)
            self._sent = torch.cuda.current_stream(flat.device).record_event()

    def open(self) -> list[Tensor]:
        """The tensors; on the CPU they were there all the time."""
        if self._sent is None:
            return self._tensors
        self._sent.synchronize()
        parts = torch.split(self._host, [tensor.numel() for tensor in self._tensors])
        return [part.view(tensor.shape) for part, tensor in zip(parts, self._tensors, strict=True)]


def are_fast(models: Models) -> bool:
    """Do all models answer many sequences at once?"""
    parts = [part for model in models for part in getattr(model, "models", (model,))]
    return all(isinstance(part, OscarModel) and part.fast is not None for part in parts)


def room_for(longest: int, events: int) -> int:
    """How many sequences of at most `longest` events are studied at once; it decides memory and speed, no result.

    >>> room_for(200, 1000), room_for(60, 1000), room_for(512, 100_000)
    (64, 160, 3)
    """
    wanted = min(MOST_IN_FLIGHT, max(IN_FLIGHT, IN_FLIGHT_EVENTS // longest))
    return max(1, min(wanted, LAWS_BYTES // (16 * longest * events)))


def by_length(lengths: Sequence[int]) -> list[int]:
    """Places in order of length, the longest first: sequences of one length bucket share launches, and what they leave
    in memory has room for the shorter ones that follow.

    >>> by_length([30, 10, 20])
    [0, 2, 1]
    """
    return [int(k) for k in np.argsort(-np.asarray(lengths), kind="stable")]
