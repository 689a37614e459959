"""Your own estimator or replacement law: one function, given to `DiscoveryConfig` or named as `module:function`.

An estimator gets the model, one sequence, the labels to explain and a source of uniforms, and returns for each label
what it found about events of the sequence. A replacement law gets the model and the sequence and returns P(event) at
every position. What they return is checked; how many contexts an estimator asked the model about is counted.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from oscar_causal.density.interface import Contexts
from oscar_causal.density.slopes import PASSES
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.contexts import Int64, Stream
from oscar_causal.errors import UsageError

Estimator = Callable[[Any, Contexts, Int64, Stream], Sequence[Sequence[EventEvidence]]]
"""(model, sequence, labels (Y',), stream) -> for each label a list of `EventEvidence`, each event at most once."""
Replacement = Callable[[Any, Contexts], Tensor]
"""(model, sequence of L events) -> P(event) at every position: (L, V), never negative, rows with some mass."""


def is_own(choice: object) -> bool:
    """Is it a function, or the name `module:function` of one?"""
    return callable(choice) or (isinstance(choice, str) and ":" in choice)


def own_function(choice: Any, what: str) -> Callable[..., Any]:
    """The function itself; a name is imported, also from the current folder."""
    found: Callable[..., Any] = _imported(choice, what) if isinstance(choice, str) else choice
    return found


def own_name(choice: Any) -> str:
    """`module:function`, as runs record it.

    >>> own_name(is_own), own_name("mine:shapley")
    ('oscar_causal.discovery.extensions:is_own', 'mine:shapley')
    """
    return choice if isinstance(choice, str) else f"{choice.__module__}:{getattr(choice, '__qualname__', choice)}"


def own_digest(choice: Any, what: str) -> str | None:
    """A hash of the function's source text; None where Python does not know it."""
    try:
        source = inspect.getsource(own_function(choice, what))
    except (OSError, TypeError):
        return None
    return hashlib.sha256(source.encode()).hexdigest()


def own_estimand(choice: Any) -> str:
    """What the function says it estimates: the first line of its docstring."""
    function = own_function(choice, "estimator")
    lines = (inspect.getdoc(function) or "").strip().splitlines()
    return lines[0] if lines else f"what {own_name(choice)} measures (it has no docstring)"


@dataclass(frozen=True)
class OwnAnswers:
    """What an own estimator found, for each label, and the contexts it asked about."""

    probabilities: list[float]
    evidence: list[tuple[EventEvidence, ...]]
    contexts: int


def run_estimator(choice: Any, density: Any, sequence: Contexts, labels: Int64, stream: Stream) -> OwnAnswers:
    """Let the function explain one sequence; what does not have the documented shape is a UsageError."""
    counted = _Counted(density)
    length = torch.tensor([sequence.event_ids.shape[1]])
    whole = counted.label_probs(sequence, torch.as_tensor(labels), length)[0, 0]
    found = _called(choice, "estimator", counted, sequence, labels, stream)
    names = {density.vocabulary.name(int(event)) for event in sequence.event_ids[0]}
    evidence = _checked(found, names, len(labels), own_name(choice))
    return OwnAnswers([float(p) for p in whole], evidence, counted.contexts)


def _called(choice: Any, what: str, *given: Any) -> Any:
    """What the function returns; one that ends the program is told, as it would end without a result."""
    try:
        return own_function(choice, what)(*given)
    except SystemExit as error:
        raise UsageError(f"{what} {own_name(choice)}: expected a result, got sys.exit({error.code!r})") from error


class OwnLaw:
    """A model whose replacements come from a function; everything else is the model's own."""

    def __init__(self, model: Any, choice: Any) -> None:
        self._model, self._choice = model, choice

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def event_probs(self, sequence: Contexts) -> Tensor:
        """The function's law, checked: (L, V)."""
        law = torch.as_tensor(_called(self._choice, "replacement", self._model, sequence))
        expected = (sequence.event_ids.shape[1], self._model.vocabulary.size)
        name = own_name(self._choice)
        if tuple(law.shape) != expected:
            raise UsageError(f"replacement {name}: expected a law of shape {expected}, got {tuple(law.shape)}")
        if not bool((torch.isfinite(law) & (law >= 0)).all()) or not bool((law.sum(-1) > 0).all()):
            raise UsageError(f"replacement {name}: expected finite numbers of 0 or more, not all 0 at any position")
        return law


class _Counted:
    """A model that counts the contexts it is asked about; a pass forward and back counts as `PASSES`."""

    def __init__(self, model: Any) -> None:
        self._model, self.contexts = model, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name not in _SPENT:
            return found

        def ask(*given: Any) -> Tensor:
            self.contexts += _SPENT[name](*given)
            answer: Tensor = found(*given)
            return answer

        return ask


_SPENT: dict[str, Callable[..., int]] = {
    "label_probs": lambda contexts, labels, positions: len(contexts.event_ids),
    "responses": lambda variants, labels: len(variants.masks),
    "label_slopes": lambda sequence, labels, law, shares: PASSES * len(labels) * len(shares),
}
"""Question -> contexts that its answer takes, or their worth."""


def _checked(found: Any, names: set[str], count: int, name: str) -> list[tuple[EventEvidence, ...]]:
    if not isinstance(found, Sequence) or len(found) != count:
        came = f"{len(found)} of them" if isinstance(found, Sequence) else type(found).__name__
        raise UsageError(f"estimator {name}: expected a list with one list of evidence per label ({count}), got {came}")
    checked = []
    for items in found:
        seen: set[str] = set()
        for item in items:
            if not isinstance(item, EventEvidence):
                raise UsageError(f"estimator {name}: expected EventEvidence, got {type(item).__name__}")
            if item.event not in names or item.event in seen:
                which = "again" if item.event in seen else "which is not in it"
                raise UsageError(f"estimator {name}: expected events of the sequence, got {item.event!r} {which}")
            seen.add(item.event)
        checked.append(tuple(items))
    return checked


@lru_cache(maxsize=32)
def _imported(name: str, what: str) -> Callable[..., Any]:
    module_name, _, path = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last: what lies in the current folder must not stand in for a library imported later
    try:
        found: Any = import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # the module is the user's: it may raise anything
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise UsageError(f"{what}: expected module:function, cannot import {name!r}: {reason}") from error
    if not callable(found):
        raise UsageError(f"{what}: expected a function at {name!r}, got {type(found).__name__}")
    return found  # type: ignore[no-any-return]
