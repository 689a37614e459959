"""Adapters against the models themselves, called one sequence at a time; laws against literal counts."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import SPECIAL_IDS, UNKNOWN_ID, Vocabulary
from oscar_causal.density import adapters
from oscar_causal.density.interface import Contexts, EventDensity, LabelDensity
from oscar_causal.errors import MissingExtra, UsageError

transformers = pytest.importorskip("transformers")

EVENTS = ("A", "B", "C", "D")
TOKENS = {"C": 5, "A": 6, "D": 7, "B": 8}  # out of order on purpose
PAD, CLS, SEP, UNK = 0, 1, 2, 3


def contexts_of(ids: list[list[int]]) -> Contexts:
    return Contexts(torch.tensor(ids), torch.arange(len(ids[0])).double(), torch.zeros(len(ids[0]), 0))


def named(vocabulary: Vocabulary, rows: list[str]) -> Contexts:
    return contexts_of([[vocabulary.event_ids.get(name, UNKNOWN_ID) for name in row] for row in rows])


@pytest.fixture(scope="module")
def bert() -> Any:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=12, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=20, num_labels=3, problem_type="multi_label_classification", pad_token_id=PAD,
        id2label={0: "x", 1: "y", 2: "z"}, label2id={"x": 0, "y": 1, "z": 2}, initializer_range=1.0,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config).eval()


def gpt2_config(**changes: Any) -> Any:
    sizes = {"vocab_size": 12, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2, "initializer_range": 0.5}
    return transformers.GPT2Config(**({**sizes, "bos_token_id": CLS, "eos_token_id": CLS} | changes))


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from tokenizers import Tokenizer, models

    words = {"[PAD]": PAD, "[CLS]": CLS, "[SEP]": SEP, "[UNK]": UNK, **TOKENS}
    fast = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=fast, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )


def test_several_labels_of_an_encoder(bert: Any) -> None:
    density = adapters.classifier(bert, TOKENS, before=(CLS,), after=(SEP,))
    assert isinstance(density, LabelDensity)
    assert density.vocabulary.events == ("C", "A", "D", "B")
    assert density.vocabulary.labels == ("x", "y", "z")
    assert density.max_length == 18
    rows = ["ABCD", "DDAB", "CBAA"]
    found = density.label_probs(named(density.vocabulary, rows), torch.tensor([2, 0]), torch.tensor([4, 1]))
    assert found.shape == (3, 2, 2)
    for n, row in enumerate(rows):
        for p, length in enumerate((4, 1)):
            tokens = [CLS, *(TOKENS[name] for name in row[:length]), SEP]
            with torch.inference_mode():
                logits = bert(input_ids=torch.tensor([tokens])).logits[0]
            torch.testing.assert_close(found[n, p], torch.sigmoid(logits)[[2, 0]], rtol=1e-4, atol=1e-5)
    assert found.std() > 0.01


@pytest.mark.parametrize("padding", [None, PAD])
def test_one_of_many_labels_of_a_decoder(padding: int | None) -> None:
    """Decoder classifiers read the last token, and refuse batches when they have no padding token."""
    torch.manual_seed(1)
    model = transformers.GPT2ForSequenceClassification(gpt2_config(num_labels=4, pad_token_id=padding)).eval()
    with pytest.raises(UsageError, match="problem_type"):
        adapters.classifier(model, TOKENS)
    density = adapters.classifier(model, TOKENS, kind="one")
    rows = ["ABC", "CCB", "DAB"]
    found = density.label_probs(named(density.vocabulary, rows), torch.arange(4), torch.tensor([2, 3]))
    torch.testing.assert_close(found.sum(-1), torch.ones(3, 2))
    for n, row in enumerate(rows):
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([[TOKENS[name] for name in row[:2]]])).logits[0]
        torch.testing.assert_close(found[n, 0], torch.softmax(logits, -1), rtol=1e-4, atol=1e-5)


def test_next_events_of_a_language_model() -> None:
    torch.manual_seed(2)
    model = transformers.GPT2LMHeadModel(gpt2_config()).eval()
    density = adapters.language_model(model, TOKENS)
    assert isinstance(density, EventDensity)
    row = "BADC"
    law = density.event_probs(named(density.vocabulary, [row]))
    assert law.shape == (4, density.vocabulary.size)
    for i in range(4):
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([[CLS, *(TOKENS[name] for name in row[:i])]])).logits[0, -1]
        for name in EVENTS:
            among = torch.logsumexp(logits[list(TOKENS.values())], 0)
            expected = float((logits[TOKENS[name]] - among).exp())
            assert float(law[i, density.vocabulary.event_ids[name]]) == pytest.approx(expected, rel=1e-3)
    assert not law[:, :SPECIAL_IDS].any()
    torch.testing.assert_close(law.sum(-1), torch.ones(4))
    headless = transformers.GPT2LMHeadModel(gpt2_config(bos_token_id=None, eos_token_id=None))
    with pytest.raises(UsageError, match="beginning-of-sequence"):
        adapters.language_model(headless, TOKENS)


def test_folders_and_tokenizers(bert: Any, tokenizer: Any, tmp_path: Path) -> None:
    bert.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    here = adapters.classifier(bert, tokenizer, before=(CLS,), after=(SEP,))
    there = adapters.classifier(str(tmp_path), before=(CLS,), after=(SEP,))
    assert here.vocabulary == there.vocabulary
    assert here.vocabulary.events == ("C", "A", "D", "B")
    contexts = contexts_of([[3, 4, UNKNOWN_ID, 6]])
    asked = torch.arange(3), torch.tensor([4])
    torch.testing.assert_close(here.label_probs(contexts, *asked), there.label_probs(contexts, *asked))
    with torch.inference_mode():
        logits = bert(input_ids=torch.tensor([[CLS, 5, 6, UNK, 8, SEP]])).logits
    torch.testing.assert_close(here.label_probs(contexts, *asked)[:, 0], torch.sigmoid(logits), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_adapted(bert: Any, tmp_path: Path) -> None:
    density = adapters.classifier(bert, TOKENS)
    with pytest.raises(UsageError, match="<unknown>"):
        density.label_probs(contexts_of([[3, UNKNOWN_ID]]), torch.tensor([0]), torch.tensor([2]))
    with pytest.raises(UsageError, match="padding"):
        adapters.classifier(bert, {"A": PAD})
    with pytest.raises(UsageError, match="at least one event"):
        adapters.classifier(bert, {})
    with pytest.raises(UsageError, match="expected a Hugging Face model"):
        adapters.classifier(3, TOKENS)
    with pytest.raises(UsageError, match="cannot be loaded") as caught:
        adapters.classifier(str(tmp_path / "none"), TOKENS)
    assert "\n" not in str(caught.value)


def test_pickled_weights_are_refused(bert: Any, tmp_path: Path) -> None:
    bert.config.save_pretrained(tmp_path)
    torch.save(bert.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(UsageError, match="cannot be loaded"):
        adapters.classifier(str(tmp_path), TOKENS)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"oscar-causal\[hf\]") as caught:
        adapters.classifier("some/model")
    assert "\n" not in str(caught.value)


def share_of_a(rows: list[list[str]]) -> list[list[float]]:
    return [[row.count("A") / max(len(row), 1), 1.0 if "<unknown>" in row else 0.0] for row in rows]


@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_a_function_gets_names_and_prefixes(batch: int) -> None:
    vocabulary = Vocabulary(("B", "A"), ("share", "odd"))
    density = adapters.from_function(share_of_a, vocabulary, batch=batch)
    assert isinstance(density, LabelDensity)
    contexts = contexts_of([[4, 3, 4, 1], [3, 3, 3, 4]])  # A B A ?, B B B A
    found = density.label_probs(contexts, torch.tensor([1, 0]), torch.tensor([4, 1, 3]))
    expected = [[[1, 0.5], [0, 1], [0, 2 / 3]], [[0, 0.25], [0, 0], [0, 0]]]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize(
    ("answer", "words"),
    [([[0.5]], "shape"), ([[0.5, 1.5]], "0 to 1"), ([[0.5, float("nan")]], "0 to 1"), (0.5, "shape")],
)
def test_a_function_that_answers_nonsense(answer: Any, words: str) -> None:
    density = adapters.from_function(lambda rows: answer, Vocabulary(("A",), ("x", "y")))
    with pytest.raises(UsageError, match=words):
        density.label_probs(contexts_of([[3]]), torch.tensor([0]), torch.tensor([1]))


@pytest.fixture(scope="module")
def lent() -> Dataset:
    rng = np.random.default_rng(0)
    return from_records(
        {
            "sequence_id": str(i),
            "events": [str(rng.choice(list("AB" if k < 5 else "BCD"))) for k in range(length)],
            "times": list(range(length)),
        }
        for i, length in enumerate([10, 20, 7, 3, 30])
    )


def test_marginal_is_a_frequency(lent: Dataset) -> None:
    vocabulary = Vocabulary(("D", "C", "B", "A", "never"), ("y",))
    law = adapters.marginal(lent, vocabulary).event_probs(contexts_of([[3, 4, 5]]))
    counts = Counter(name for i in range(len(lent)) for name in lent.events_of(i))
    for name, index in vocabulary.event_ids.items():
        assert law[:, index].tolist() == pytest.approx([counts[name] / sum(counts.values())] * 3)
    assert not law[:, :SPECIAL_IDS].any()
    with pytest.raises(UsageError, match="found none"):
        adapters.marginal(lent, Vocabulary(("never",), ()))


def test_donors_stand_in_the_same_tenth(lent: Dataset) -> None:
    law = adapters.donors(lent)
    found = law.event_probs(contexts_of([[3] * 25]))
    for at in range(25):
        part = at * 10 // 25
        counts: Counter[str] = Counter()
        for i in range(len(lent)):
            events = lent.events_of(i)
            counts.update(name for k, name in enumerate(events) if k * 10 // len(events) == part)
        for name, index in law.vocabulary.event_ids.items():
            assert float(found[at, index]) == pytest.approx(counts[name] / sum(counts.values()))


def test_combined_is_what_discovery_needs(lent: Dataset, bert: Any) -> None:
    labels = adapters.classifier(bert, TOKENS)
    model = adapters.combine(labels=labels, events=adapters.marginal(lent, labels.vocabulary))
    assert isinstance(model, LabelDensity)
    assert isinstance(model, EventDensity)
    contexts = named(model.vocabulary, ["ABC"])
    assert model.event_probs(contexts).shape == (3, model.vocabulary.size)
    assert model.label_probs(contexts, torch.tensor([1]), torch.tensor([3])).shape == (1, 1, 1)
    assert (model.max_length, model.min_context) == (20, 1)
    lm = adapters.language_model(transformers.GPT2LMHeadModel(gpt2_config()), TOKENS)
    assert adapters.combine(labels=labels, events=lm).max_length == 15
    with pytest.raises(UsageError, match="same events"):
        adapters.combine(labels=labels, events=adapters.marginal(lent))


def test_discovery_runs_on_a_function(lent: Dataset) -> None:
    from oscar_causal.discovery.oneshot import DiscoveryConfig, discover

    vocabulary = Vocabulary(("A", "B", "C", "D"), ("fault",))
    labels = adapters.from_function(lambda rows: [[0.95 if "C" in row else 0.05] for row in rows], vocabulary)
    model = adapters.combine(labels=labels, events=adapters.donors(lent, vocabulary))
    (boundaries,) = discover(model, lent, DiscoveryConfig(labels=("fault",)), indices=[4])
    assert boundaries[0].label == "fault"
    assert boundaries[0].evidence
    strongest = max(boundaries[0].evidence, key=lambda item: abs(item.effect or 0))
    assert strongest.event == "C"
