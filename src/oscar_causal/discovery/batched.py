"""Many sequences at once: each is explained by its own thread, and what they ask of the model is answered together.

The estimators stay as they are, one sequence at a time. The model they meet (`Proxy`) lets a thread wait until every
other one waits too or has ended; then all their questions go through the network in launches of fixed shapes
(`density.compiled`). Which sequences wait together changes no bit of any answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from torch import Tensor

from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.compiled import Question
from oscar_causal.density.folds import MeanModel
from oscar_causal.density.interface import Contexts
from oscar_causal.density.many_slopes import SlopeQuestion
from oscar_causal.density.memory import Pieces
from oscar_causal.density.model import OscarModel

IN_FLIGHT = 64
"""Most sequences under study at the same time."""
LAWS_BYTES = 4 << 30
"""Room for their replacement laws (L, V): a double and, while it is made, two single precision numbers an entry."""

Models = Sequence[Any]
"""An `OscarModel` or the mean of several, or proxies of them: the one that judges, then those that are asked too."""
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(eq=False)
class Ticket:
    """One question of one thread."""

    model: OscarModel
    kind: str
    """Name of the method of the model."""
    question: tuple[Any, ...]
    pieces: Pieces
    answered: threading.Event = field(default_factory=threading.Event)
    answer: Any = None
    error: BaseException | None = None


class Meeting:
    """Where threads leave their questions."""

    def __init__(self, threads: int) -> None:
        self._busy = threads
        self._tickets: list[Ticket] = []
        self._changed = threading.Condition()

    def ask(self, ticket: Ticket) -> Any:
        """Leave a question and wait for its answer (called by the threads)."""
        with self._changed:
            self._tickets.append(ticket)
        self.leave()
        ticket.answered.wait()
        if ticket.error is not None:
            raise ticket.error
        return ticket.answer

    def leave(self) -> None:
        """A thread waits or has ended."""
        with self._changed:
            self._busy -= 1
            self._changed.notify()

    def rounds(self) -> Iterator[list[Ticket]]:
        """All questions once every thread waits for an answer or has ended, again and again until all have ended."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._busy == 0)
                tickets, self._tickets = self._tickets, []
                self._busy += len(tickets)
            if not tickets:
                return
            yield tickets
            for ticket in tickets:
                ticket.answered.set()


@dataclass(eq=False)
class Proxy:
    """A model as one thread meets it: the same answers, made together with those of other threads."""

    model: OscarModel
    meeting: Meeting
    pieces: Pieces = field(default_factory=Pieces)
    """Of this thread: says whether memory was short while its questions were answered."""

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

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v | events before i) at every position: (L, V)."""
        return self._ask("event_probs", sequence)

    def event_logp(self, contexts: Contexts) -> Tensor:
        """log P of the event that stands at each position given those before: (N, L), in nats."""
        return self._ask("event_logp", contexts)

    def label_slopes(self, sequence: Contexts, labels: Tensor, law: Tensor, shares: Sequence[float]) -> Tensor:
        """How fast the log odds of each label fall as each event fades into its law: (S, L, Y')."""
        return self._ask("label_slopes", sequence, labels, law, shares)

    def _ask(self, kind: str, *question: Any) -> Tensor:
        answer: Tensor = self.meeting.ask(Ticket(self.model, kind, question, self.pieces))
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
    threads = min(in_flight, len(items))
    meeting, work = Meeting(threads), _Work(explain, models, items)
    crew = [threading.Thread(target=work.run, args=(meeting,), daemon=True) for _ in range(threads)]
    for thread in crew:
        thread.start()
    try:
        for tickets in meeting.rounds():
            answer_all(tickets)
    finally:
        work.stopped = True
    for thread in crew:
        thread.join()
    if work.errors:
        raise work.errors[min(work.errors)]
    return [work.results[k] for k in range(len(items))]


class _Work(Generic[Item, Result]):
    """Items that threads take one after the other."""

    def __init__(self, explain: Callable[[Models, Item], Result], models: Models, items: Sequence[Item]) -> None:
        self.explain, self.models, self.items = explain, models, items
        self.results: dict[int, Result] = {}
        self.errors: dict[int, BaseException] = {}
        self.stopped = False
        self._next = iter(range(len(items)))
        self._lock = threading.Lock()

    def run(self, meeting: Meeting) -> None:
        """Take items until none is left (a thread's whole life)."""
        try:
            while not self.stopped and (k := self._take()) is not None:
                try:
                    met = [_proxy(model, meeting) for model in self.models]
                    self.results[k] = self.explain(met, self.items[k])
                except BaseException as error:  # told to the caller, who raises it
                    self.errors[k] = error
                    self.stopped = True
        finally:
            meeting.leave()

    def _take(self) -> int | None:
        with self._lock:
            return next(self._next, None)


def _proxy(model: OscarModel | MeanModel, meeting: Meeting) -> Any:
    if isinstance(model, MeanModel):
        return MeanModel(tuple(Proxy(part, meeting) for part in model.models))  # type: ignore[misc]
    return Proxy(model, meeting)


def answer_all(tickets: Sequence[Ticket]) -> None:
    """Answer every ticket: those of one kind to one model together."""
    groups: dict[tuple[int, str], list[Ticket]] = {}
    for ticket in tickets:
        groups.setdefault((id(ticket.model), ticket.kind), []).append(ticket)
    for group in groups.values():
        model, kind = group[0].model, group[0].kind
        model.pieces.short = None
        try:
            answers = _answer(model, kind, [ticket.question for ticket in group])
        except Exception as error:  # each thread that asked gets it
            for ticket in group:
                ticket.error = error
            continue
        for ticket, answer in zip(group, answers, strict=True):
            ticket.answer = answer
            if model.pieces.short is not None:
                ticket.pieces.short = min(ticket.pieces.short or model.pieces.short, model.pieces.short)


def _answer(model: OscarModel, kind: str, questions: list[tuple[Any, ...]]) -> list[Tensor]:
    if kind == "label_probs":
        return model.label_probs_together([Question(*question) for question in questions])
    if kind == "event_probs":
        return model.event_probs_together([sequence for (sequence,) in questions])
    if kind == "event_logp":
        return model.event_logp_together([contexts for (contexts,) in questions])
    return model.label_slopes_together([SlopeQuestion(*question) for question in questions])


def are_fast(models: Models) -> bool:
    """Do all models answer many sequences at once?"""
    parts = [part for model in models for part in getattr(model, "models", (model,))]
    return all(isinstance(part, OscarModel) and part.fast is not None for part in parts)


def room_for(longest: int, events: int) -> int:
    """How many sequences of at most `longest` events are studied at once; it decides memory and speed, no result.

    >>> room_for(100, 1000), room_for(512, 100_000)
    (64, 5)
    """
    return max(1, min(IN_FLIGHT, LAWS_BYTES // (16 * longest * events)))


def by_length(lengths: Sequence[int]) -> list[int]:
    """Places in order of length: sequences of one length bucket share launches.

    >>> by_length([30, 10, 20])
    [1, 2, 0]
    """
    return [int(k) for k in np.argsort(np.asarray(lengths), kind="stable")]
