"""Other people's models behind our two protocols: Hugging Face models and plain functions.

    density = adapters.combine(
        labels=adapters.classifier(model, tokenizer), events=adapters.language_model(lm, tokenizer)
    )

In a Hugging Face model one event is one token. Text models that spell an event with several tokens come in as a plain
function (`from_function`), which gets names. A model without a next-event density borrows a replacement law: `marginal`
or `donors`. Nothing is ever loaded from pickled weights, and no code that comes with a model is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from oscar_causal.data.vocabulary import SPECIAL_IDS, UNKNOWN_ID, Vocabulary
from oscar_causal.density.interface import Contexts, EventDensity, LabelDensity
from oscar_causal.density.replacement import PlaceLaw, donors, marginal
from oscar_causal.errors import MissingExtra, UsageError

__all__ = ["Combined", "PlaceLaw", "classifier", "combine", "donors", "from_function", "language_model", "marginal"]

LabelFunction = Callable[[list[list[str]]], npt.ArrayLike]
"""Lists of event names -> probabilities (n, Y)."""


@dataclass(frozen=True, eq=False)
class Combined:
    """A label density and an event density over the same events: all that discovery needs."""

    labels: LabelDensity
    events: EventDensity

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of events and labels."""
        return self.labels.vocabulary

    @property
    def max_length(self) -> int:
        """Longest sequence (in events) both take."""
        return min(self.labels.max_length, int(getattr(self.events, "max_length", self.labels.max_length)))

    @property
    def min_context(self) -> int:
        """Fewest events after which label probabilities mean something."""
        return self.labels.min_context

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events): (N, P, Y')."""
        return self.labels.label_probs(contexts, labels, positions)

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v | events before i): (L, V)."""
        return self.events.event_probs(sequence)


def combine(*, labels: LabelDensity, events: EventDensity) -> Combined:
    """Two densities as one model; their event vocabularies must be the same, in the same order."""
    mine, theirs = labels.vocabulary.events, getattr(events, "vocabulary", labels.vocabulary).events
    if mine != theirs:
        odd = next(((a, b) for a, b in zip(mine, theirs, strict=False) if a != b), None)
        where = f"{odd[0]!r} against {odd[1]!r}" if odd else f"{len(mine)} against {len(theirs)} events"
        raise UsageError(f"combine: expected the same events in the same order in both models, got {where}")
    return Combined(labels, events)


@dataclass(frozen=True, eq=False)
class FunctionLabels:
    """A plain function as a `LabelDensity`; prefixes are handed to it as shorter sequences."""

    function: LabelFunction
    vocabulary: Vocabulary
    max_length: int
    min_context: int
    batch: int

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events): (N, P, Y')."""
        names = [[self.vocabulary.name(int(i)) for i in row] for row in contexts.event_ids.tolist()]
        asked = [row[:position] for position in positions.tolist() for row in names]  # position by position
        parts = [self._ask(asked[begin : begin + self.batch]) for begin in range(0, len(asked), self.batch)]
        every = np.concatenate(parts).reshape(len(positions), len(names), -1)[:, :, labels.cpu().numpy()]
        return torch.as_tensor(every.transpose(1, 0, 2).copy(), dtype=torch.float32, device=contexts.event_ids.device)

    def _ask(self, sequences: list[list[str]]) -> npt.NDArray[np.float64]:
        probs = np.asarray(self.function(sequences), dtype=np.float64)
        expected = (len(sequences), len(self.vocabulary.labels))
        if probs.shape != expected:
            raise UsageError(f"label function: expected probabilities of shape {expected}, got {probs.shape}")
        if not (np.isfinite(probs).all() and (probs >= 0).all() and (probs <= 1).all()):
            raise UsageError(f"label function: expected numbers from 0 to 1, got {probs.min()} to {probs.max()}")
        return probs


def from_function(
    function: LabelFunction, vocabulary: Vocabulary, *, max_length: int = 512, min_context: int = 1, batch: int = 1024
) -> FunctionLabels:
    """A function from lists of event names to probabilities (n, Y) as a label density.

    Columns are `vocabulary.labels`. Events outside the vocabulary reach the function as `<unknown>`; at most `batch`
    sequences are asked at once; with `min_context` = 0 it must also answer for the empty sequence.

    >>> vocabulary = Vocabulary(("A", "B"), ("fault",))
    >>> density = from_function(lambda rows: [[0.9 if "A" in row else 0.1] for row in rows], vocabulary)
    >>> contexts = Contexts(torch.tensor([[4, 3]]), torch.zeros(2).double(), torch.zeros(2, 0))
    >>> [round(p, 1) for p in density.label_probs(contexts, torch.tensor([0]), torch.tensor([1, 2]))[0, :, 0].tolist()]
    [0.1, 0.9]
    """
    return FunctionLabels(function, vocabulary, max_length, min_context, batch)


@dataclass(frozen=True, eq=False)
class TokenModel:
    """A Hugging Face model and how events become its tokens."""

    model: Any
    vocabulary: Vocabulary
    tokens: Tensor
    """(V,) token of every model id; -1 = none."""
    before: tuple[int, ...]
    """Tokens in front of the events."""
    after: tuple[int, ...]
    """Tokens behind them."""
    max_length: int
    batch_tokens: int = 8192

    def inputs(self, event_ids: Tensor) -> Tensor:
        """Event ids (N, l) as input tokens with what belongs before and after."""
        tokens = self.tokens[event_ids.cpu()]
        if (tokens < 0).any():
            name = self.vocabulary.name(int(event_ids.cpu()[tokens < 0][0]))
            raise UsageError(f"Hugging Face model: expected events that are tokens of the model, got {name}")
        ends = [torch.tensor(part, dtype=torch.int64).expand(len(tokens), -1) for part in (self.before, self.after)]
        return torch.cat([ends[0], tokens, ends[1]], dim=1).to(self.model.device)

    @torch.inference_mode()
    def logits(self, tokens: Tensor) -> Tensor:
        """The model's logits for rows of equal length, in float32; as many rows at once as fit."""
        single = getattr(self.model.config, "pad_token_id", None) is None  # such models refuse batches
        rows = 1 if single else max(1, self.batch_tokens // tokens.shape[1])
        parts = [self.model(input_ids=x, attention_mask=torch.ones_like(x)).logits for x in torch.split(tokens, rows)]
        return torch.cat(parts).float()


@dataclass(frozen=True, eq=False)
class ClassifierLabels:
    """A Hugging Face sequence classifier as a `LabelDensity`; prefixes are classified as shorter sequences."""

    part: TokenModel
    several: bool
    """Several labels at once (sigmoid) rather than one of many (softmax)."""
    min_context: int = 1

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of events and labels."""
        return self.part.vocabulary

    @property
    def max_length(self) -> int:
        """Longest sequence (in events) the model takes."""
        return self.part.max_length

    def label_probs(self, contexts: Contexts, labels: Tensor, positions: Tensor) -> Tensor:
        """P(label | the first `positions[p]` events): (N, P, Y')."""
        columns = []
        for position in positions.tolist():
            logits = self.part.logits(self.part.inputs(contexts.event_ids[:, :position]))  # (N, Y)
            probs = torch.sigmoid(logits) if self.several else torch.softmax(logits, dim=-1)
            columns.append(probs[:, labels.to(probs.device)])
        return torch.stack(columns, dim=1).to(contexts.event_ids.device)


@dataclass(frozen=True, eq=False)
class LanguageModelEvents:
    """A Hugging Face causal language model as an `EventDensity`."""

    part: TokenModel

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of events; no labels."""
        return self.part.vocabulary

    @property
    def max_length(self) -> int:
        """Longest sequence (in events) the model takes."""
        return self.part.max_length

    def event_probs(self, sequence: Contexts) -> Tensor:
        """P(event i = v | events before i), given that it is an event: (L, V)."""
        length, skip = sequence.event_ids.shape[1], len(self.part.before)
        logits = self.part.logits(self.part.inputs(sequence.event_ids))[0, skip - 1 : skip - 1 + length]
        law = torch.zeros(length, self.vocabulary.size, device=logits.device)
        law[:, SPECIAL_IDS:] = torch.softmax(logits[:, self.part.tokens[SPECIAL_IDS:].to(logits.device)], dim=-1)
        return law.to(sequence.event_ids.device)


def classifier(
    model: Any,
    tokens: Any = None,
    *,
    kind: Literal["several", "one"] | None = None,
    before: Sequence[int] = (),
    after: Sequence[int] = (),
    max_length: int | None = None,
    min_context: int = 1,
) -> ClassifierLabels:
    """Any Hugging Face sequence classifier as a label density. Label names are the model's `id2label`.

    `model` is a model, or the name or folder of one. `tokens` is its tokenizer or a dictionary event -> token id (by
    default the tokenizer stored with the model). `kind`: several labels at once, or one of many; by default the model's
    `problem_type`. `before` and `after` are token ids around the events, such as [CLS] and [SEP].
    """
    loaded = _load(model, "AutoModelForSequenceClassification")
    names = tuple(loaded.config.id2label[i] for i in range(loaded.config.num_labels))
    kinds = {"multi_label_classification": "several", "single_label_classification": "one"}
    kind = kind or kinds.get(getattr(loaded.config, "problem_type", None) or "")  # type: ignore[assignment]
    if kind not in ("several", "one"):
        raise UsageError("classifier: the model does not say its problem_type; expected kind='several' or kind='one'")
    part = _token_model(loaded, _tokens(model, loaded, tokens), names, (before, after), max_length)
    return ClassifierLabels(part, kind == "several", min_context)


def language_model(
    model: Any, tokens: Any = None, *, before: Sequence[int] | None = None, max_length: int | None = None
) -> LanguageModelEvents:
    """Any Hugging Face causal language model as an event density; `model` and `tokens` as in `classifier`.

    `before` stands in front of the first event (default: the model's beginning-of-sequence token); without it the
    model has no law of the first event.
    """
    loaded = _load(model, "AutoModelForCausalLM")
    start = getattr(loaded.config, "bos_token_id", None)
    front = tuple(before) if before is not None else () if start is None else (int(start),)
    if not front:
        raise UsageError("language model: it has no beginning-of-sequence token; expected before=(token id,)")
    return LanguageModelEvents(_token_model(loaded, _tokens(model, loaded, tokens), (), (front, ()), max_length))


def _token_model(
    model: Any,
    table: tuple[Mapping[str, int], int | None],
    labels: tuple[str, ...],
    ends: tuple[Sequence[int], Sequence[int]],
    longest: int | None,
) -> TokenModel:
    known, unknown = table
    padding = getattr(model.config, "pad_token_id", None)
    clash = [name for name, token in known.items() if token == padding]
    if clash:
        raise UsageError(f"tokens: event {clash[0]!r} is token {padding}, which the model takes for padding")
    vocabulary = Vocabulary(tuple(sorted(known, key=lambda name: (known[name], name))), labels)
    ids = torch.full((vocabulary.size,), -1, dtype=torch.int64)
    ids[SPECIAL_IDS:] = torch.tensor([known[name] for name in vocabulary.events], dtype=torch.int64)
    if unknown is not None:
        ids[UNKNOWN_ID] = unknown
    room = getattr(model.config, "max_position_embeddings", None)
    limit = longest or (int(room) - len(ends[0]) - len(ends[1]) if room else 512)
    model.eval()
    return TokenModel(model, vocabulary, ids, tuple(ends[0]), tuple(ends[1]), limit)


def _tokens(given: Any, model: Any, tokens: Any) -> tuple[Mapping[str, int], int | None]:
    """Event name -> token id without special tokens, and the token of unknown events."""
    if isinstance(tokens, Mapping):
        if not tokens:
            raise UsageError("tokens: expected at least one event, got none")
        return {str(name): int(token) for name, token in tokens.items()}, None
    place = given if isinstance(given, str) else getattr(model, "name_or_path", "")
    if tokens is None and not place:
        raise UsageError("tokens: expected a tokenizer or a dictionary event -> token id, got none")
    tokenizer = tokens if tokens is not None else _transformers().AutoTokenizer.from_pretrained(place)
    special = set(tokenizer.all_special_tokens)
    known = {name: int(token) for name, token in tokenizer.get_vocab().items() if name not in special}
    unknown = tokenizer.unk_token_id
    return known, None if unknown is None else int(unknown)


def _load(model: Any, family: str) -> Any:
    if not isinstance(model, str):
        if not hasattr(model, "config") or not callable(model):
            raise UsageError(f"model: expected a Hugging Face model or its name, got {type(model).__name__}")
        return model
    try:
        return getattr(_transformers(), family).from_pretrained(model, use_safetensors=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise UsageError(f"{model}: cannot be loaded as a Hugging Face model: {first}") from error


def _transformers() -> Any:
    try:
        return import_module("transformers")
    except ImportError as error:
        raise MissingExtra("Hugging Face models need transformers: pip install 'oscar-causal[hf]'") from error
