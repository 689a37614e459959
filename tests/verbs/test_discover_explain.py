"""`discover` and `explain` as a user meets them: knowledge, doubt, counts, memory, and odd input in one clear line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.density.folds import load_models
from oscar_causal.discovery.results import read_run, read_table

Oscar = Callable[..., Any]
FEW = ("--contexts", "32")


@pytest.fixture
def discover(oscar: Oscar, toy: Any, tmp_path: Path) -> Callable[..., Any]:
    return lambda *words: oscar("discover", toy.model, toy.fleet, "--out", tmp_path / "r", *words)


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_a_run_tells_its_memory_and_what_became_of_every_sequence(
    discover: Callable[..., Any], toy: Any, tmp_path: Path
) -> None:
    ran = discover(*FEW)
    assert ran.code == 0, ran.err
    assert ran.err.startswith("memory: about 0.")
    assert "12 of 30 sequences explained; 18 without a label to explain; 1 shorter than c" in ran.out
    assert f"{toy.counts['unknown_events']} events unknown to the model (most often E2" in ran.out
    assert f"{toy.counts['unknown_labels']} labels unknown to the model (most often z)" in ran.out
    unknown = read_run(tmp_path / "r")["unknown"]
    assert sorted(unknown["events"]) == ["E20", "E21", "E22", "E23"]
    assert unknown["labels"] == ["z"]


def test_knowledge_and_other_models_reach_the_tables(discover: Callable[..., Any], toy: Any, tmp_path: Path) -> None:
    known = write(tmp_path / "k.json", {"labels": {"x": {"required": ["E3"]}, "y": {"forbidden": ["E1"]}}})
    ran = discover(*FEW, "--knowledge", known, "--also", toy.other, "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert summary["counts"]["sequences"] == 30
    causes = read_table(tmp_path / "r", "causes").to_pylist()
    assert not [row for row in causes if (row["label"], row["event"]) == ("y", "E1")]
    assert [row for row in causes if (row["label"], row["event"], row["source"]) == ("x", "E3", "background knowledge")]
    assert all(row["agreement"] in (0.5, 1.0) for row in causes if row["event"] != "E3")
    recorded = read_run(tmp_path / "r")["config"]["knowledge"]["labels"]
    assert recorded == {"x": {"forbidden": [], "required": ["E3"]}, "y": {"forbidden": ["E1"], "required": []}}


@pytest.mark.parametrize("replacement", ["marginal", "donors", "delete"])
def test_other_replacements(discover: Callable[..., Any], tmp_path: Path, replacement: str) -> None:
    ran = discover(*FEW, "--replacement", replacement, "--json")
    assert ran.code == 0, ran.err
    assert read_run(tmp_path / "r")["config"]["replacement"] == replacement
    logp = read_table(tmp_path / "r", "verdicts")["contexts_logp"].to_pylist()
    assert all((value is None) == (replacement == "delete") for value in logp)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--alpha", "0"), "alpha: expected 0.0005 up to 1 (smaller ones cannot be told), got 0.0"),
        (("--alpha", "nan"), "alpha"),
        (("--alpha", "five"), "--alpha"),
        (("--delta", "1.5"), "delta"),
        (("--contexts", "0"), "contexts"),
        (("--contexts", "0", "--estimator", "prefix"), "contexts"),
        (("--context", "0", "--estimator", "prefix"), "context"),
        (("--sampler", "dice", "--estimator", "prefix"), "dice"),
        (("--threshold", "inf", "--estimator", "prefix"), "threshold"),
        (("--memory", "0"), "--memory: expected a number of GiB above 0, got 0.0"),
        (("--memory", "0.00001"), "--memory: expected at least"),
        (("--workers", "0"), "workers"),
        (("--device", "abacus"), "abacus"),
        (("--replacement", "magic"), "magic"),
        (("--replacement", "delete", "--estimator", "prefix"), "replacement"),
        (("--exclude", "E99"), "'E99'"),
        (("--knowledge", "nowhere.json"), "nowhere.json"),
        (("--also", "nowhere"), "nowhere"),
        (("--label", "z"), "'z'"),
        (("--label", "x", "--predicted"), "--predicted"),
        (("--label", "x", "--label", "x"), "'x'"),
        (("--held-out", "--exclude", "<unknown>"), "'<unknown>'"),
        (("--max-lag", "9"), "--max-lag: an option of prefix, got it with the estimator intervention"),
        (("--threshold", "2.75"), "--threshold: an option of prefix"),
        (("--context", "15"), "--context: an option of prefix"),
        (("--sampler", "top-k"), "--sampler: an option of prefix"),
        (("--top-k", "5"), "--top-k: an option of prefix"),
        (("--alpha", "0.05", "--estimator", "prefix"), "--alpha: an option of intervention and fused, got it with"),
        (("--tested-only", "--estimator", "prefix"), "--tested-only: an option of intervention, got it with the"),
        (("--tested-only", "--estimator", "fused"), "--tested-only: an option of intervention, got it with the"),
        (("--delta", "0.05", "--estimator", "prefix"), "--delta: an option of intervention and fused"),
        (("--delta", "0.1", "--estimator", "statistics:mean"), "--delta: an option of intervention and fused"),
        (("--context", "3", "--estimator", "statistics:mean"), "--context: an option of prefix"),
        (("--top-k", "0", "--estimator", "prefix"), "top_k: expected at least 1, got 0"),
        (("--top-p", "1.5", "--estimator", "prefix"), "top_p"),
        (("--temperature", "0", "--estimator", "prefix"), "temperature"),
        (
            ("--contexts", "8", "--estimator", "prefix", "--sampler", "none"),
            "--contexts: --sampler none has one context",
        ),
        (
            ("--top-p", "0.5", "--estimator", "prefix", "--sampler", "none"),
            "--top-p: an option of --sampler top-k, got --sampler none",
        ),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    discover: Callable[..., Any], tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    discover(*words).refused(expected)
    assert not list(tmp_path.iterdir())


def test_names_in_a_knowledge_file_are_checked(discover: Callable[..., Any], tmp_path: Path) -> None:
    for content, word in (({"required": ["E99"]}, "E99"), ({"labels": {"w": {}}}, "'w'"), ({"needed": []}, "needed")):
        discover("--knowledge", write(tmp_path / "k.json", content)).refused(word)


def test_small_budgets_of_one_estimator_do_not_trouble_the_other(discover: Callable[..., Any]) -> None:
    assert discover("--estimator", "prefix", "--contexts", "4", "--context", "3").code == 0


def test_prefix_begins_at_the_c_of_the_model_unless_told(
    discover: Callable[..., Any], toy: Any, tmp_path: Path
) -> None:
    assert discover("--estimator", "prefix", "--contexts", "4").code == 0
    assert read_run(tmp_path / "r")["config"]["prefix"]["context"] == load_models(toy.model).min_context == 5


def test_the_draws_of_prefix_are_set_from_the_command(discover: Callable[..., Any], tmp_path: Path) -> None:
    words = ("--estimator", "prefix", "--contexts", "4", "--context", "5")
    assert discover(*words, "--top-k", "3", "--top-p", "1", "--temperature", "0.5").code == 0
    found = read_run(tmp_path / "r")["config"]["prefix"]
    assert {name: found[name] for name in ("top_k", "top_p", "temperature")} == {
        "top_k": 3,
        "top_p": 1.0,
        "temperature": 0.5,
    }
    few = read_table(tmp_path / "r", "evidence")
    assert discover(*words, "--force").code == 0
    assert read_table(tmp_path / "r", "evidence") != few


def test_prefixes_shorter_than_those_trained_on_are_told(discover: Callable[..., Any], tmp_path: Path) -> None:
    """The toy model's c is 5."""
    for context, told in ((3, True), (5, False)):
        ran = discover("--estimator", "prefix", "--contexts", "4", "--context", context, "--force")
        assert ("--context 3: the model has learnt to predict labels from c = 5 events on" in ran.err) is told
        flags = read_table(tmp_path / "r", "verdicts")["flags"].to_pylist()
        assert all(any(flag.startswith("c = 3: the model has learnt") for flag in row) is told for row in flags)


HARD = ("--alpha", "0.0005")
"""So few contexts can hardly be so sure: what is accepted is accepted by score."""


def test_a_run_tells_how_many_no_test_has_shown(discover: Callable[..., Any], tmp_path: Path) -> None:
    words = (*FEW, *HARD, "--label", "x", "--force")
    summary = json.loads(discover(*words, "--json").out)
    ways = read_table(tmp_path / "r", "causes")["accepted_by"].to_pylist()
    assert (summary["by_test"], summary["by_score"]) == (ways.count("test"), ways.count("score"))
    assert summary["by_score"] > 0
    assert f"causes ({ways.count('score')} of them by score: no test has shown them)," in discover(*words).out
    only = json.loads(discover(*words, "--tested-only", "--json").out)
    assert only["by_score"] == 0
    assert only["causes"] == summary["causes"] - summary["by_score"]
    assert "by score" not in discover(*words, "--tested-only").out


# --- explain ---


@pytest.fixture
def explain(oscar: Oscar, toy: Any, tmp_path: Path) -> Callable[..., Any]:
    def run(record: Any, *words: object) -> Any:
        return oscar("explain", toy.model, write(tmp_path / "one.json", record), *FEW, *words)

    return run


EVENTS = ["E5", "E0", "E7", "E8", "E9", "E10", "E11", "E12"]


def test_explain_shows_causes_doubt_and_knowledge(explain: Callable[..., Any], toy: Any, tmp_path: Path) -> None:
    known = write(tmp_path / "k.json", {"labels": {"x": {"required": ["E7"]}}})
    told = explain({"events": EVENTS, "labels": ["x"]}, "--knowledge", known, "--also", toy.other)
    assert told.code == 0, told.err
    assert "timeline  .++....." in told.out
    for words in ("agree", "background knowledge", "plausibility: mean log P of an event is", "required by"):
        assert words in told.out, words
    plain = explain({"events": EVENTS, "labels": ["x"]})
    assert "agree" not in plain.out
    assert "source" not in plain.out


def test_explain_as_json_is_json(explain: Callable[..., Any], tmp_path: Path) -> None:
    known = write(tmp_path / "k.json", {"required": EVENTS})
    (found,) = json.loads(explain({"events": EVENTS, "labels": ["x"]}, "--knowledge", known, "--json").out)
    causes = {cause["event"]: cause for cause in found["causes"]}
    assert set(causes) == set(EVENTS)
    assert [event for event in EVENTS if causes[event]["effect"] is not None] == ["E0"]  # alone worth a close look
    assert found["trusted"] is True
    assert found["seen_in_training"] is False
    assert found["observed_logp"] < 0
    assert found["contexts_logp"] < 0
    assert found["ranked_by"] == "slopes"


def test_explain_shows_what_an_acceptance_rests_on(
    explain: Callable[..., Any], discover: Callable[..., Any], oscar: Oscar, toy: Any, tmp_path: Path
) -> None:
    words = (*FEW, *HARD, "--label", "x")
    discover(*words)
    every = read_table(tmp_path / "r", "causes").to_pylist()
    counts = Counter(row["sequence_id"] for row in every)
    causes = [row for row in every if counts[row["sequence_id"]] == 1]
    for way in ("test", "score"):
        cause = next(row for row in causes if row["accepted_by"] == way)
        name, one = cause["event"], ("explain", toy.model, cause["sequence_id"], "--dataset", toy.fleet, *words)
        (found,) = json.loads(oscar(*one, "--json").out)
        assert [(row["accepted_by"], row["share"]) for row in found["causes"]] == [(way, cause["share"])]
        told = oscar(*one).out
        row = next(line for line in told.splitlines() if f"│ {name} " in line)
        assert row.replace("│", " ").split()[:2] == [name, way]
        assert "score = by slopes and a measured fall, no error rate goes with it" in told
        assert (f"accepted by score: {name} ({cause['share']:.2f}) (share of" in told) is (way == "score")
        (found,) = json.loads(oscar(*one, "--tested-only", "--json").out)
        assert len(found["causes"]) == (way == "test")
    refused = explain({"events": EVENTS}, "--tested-only", "--population", tmp_path)
    refused.refused("--tested-only: an option of intervention")


def test_folds_that_do_not_know_the_sequence_answer_by_their_mean(oscar: Oscar, toy: Any, tmp_path: Path) -> None:
    one = write(tmp_path / "one.json", {"events": EVENTS, "labels": ["x"]})
    (found,) = json.loads(oscar("explain", toy.folds, one, *FEW, "--json").out)
    assert {cause["event"]: cause["agreement"] for cause in found["causes"]} == {"E0": 1.0}


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"events": ["E0"], "labels": ["x"]}, "shorter than the model's c = 5 events"),
        ({"events": ["E20", "who"], "labels": ["x"]}, "2 unknown events"),
        ({"events": ["E20", "who"], "labels": ["x"]}, "no event may be replaced"),
        ({"events": EVENTS * 5, "labels": ["x"]}, "oldest events cut off"),
        ({"events": EVENTS, "labels": ["y"]}, "cannot judge this label"),
        ({"events": EVENTS, "labels": ["z"]}, "the model does not know 'z'"),
        ({"events": ["E7", "E8"]}, "none is recorded and none has P > 0.5"),
        ({"events": EVENTS}, ": x, P = "),
        ({"events": ["E0"] * 6, "labels": ["x"]}, ": x, P = "),
    ],
)
def test_odd_sequences_are_explained_with_a_remark(explain: Callable[..., Any], record: Any, words: str) -> None:
    told = explain(record)
    assert told.code == 0, told.err
    assert words in told.out


def test_explain_says_what_discover_says(
    explain: Callable[..., Any], discover: Callable[..., Any], oscar: Oscar, toy: Any, tmp_path: Path
) -> None:
    import torch

    assert discover(*FEW).code == 0
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        ran = oscar("explain", toy.model, "car 5", "--dataset", toy.fleet, *FEW, "--json")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    told = {(item["label"], cause["event"]): cause for item in json.loads(ran.out) for cause in item["causes"]}
    rows = [row for row in read_table(tmp_path / "r", "causes").to_pylist() if row["sequence_id"] == "car 5"]
    assert {(row["label"], row["event"]) for row in rows} == set(told) != set()
    for row in rows:
        cause = told[row["label"], row["event"]]
        assert {name: cause[name] for name in row if name in cause} == {
            name: value for name, value in row.items() if name in cause
        }


def test_explain_works_with_one_thread_as_discover_does(
    explain: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The toy is too small for threads to move a bit; a real model's figures move."""
    import torch

    from oscar_causal.discovery import oneshot

    threads, real = [], oneshot.discover

    def discover(*words: Any, **options: Any) -> Any:
        for found in real(*words, **options):
            threads.append(torch.get_num_threads())
            yield found

    monkeypatch.setattr(oneshot, "discover", discover)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert explain({"events": EVENTS, "labels": ["x"]}).code == 0
    finally:
        torch.set_num_threads(before)
    assert threads == [1]


def test_labels_and_events_that_the_model_does_not_know_are_named(explain: Callable[..., Any]) -> None:
    both = explain({"events": EVENTS, "labels": ["x", "z"]})
    assert "not explained: the model does not know 'z'\n" in both.out
    assert ": x, P = " in both.out
    assert "2 unknown events: who, E20\n" in explain({"events": ["who", "E20"], "labels": ["x"]}).out
    none = explain({"events": [f"new {k % 7}" for k in range(9)]})
    assert "no label to explain: none is recorded and none has P > 0.5\n" in none.out
    assert "9 of 9 events are unknown to the model: new 0, new 1, new 2, new 3, new 4 and 2 more\n" in none.out


def test_under_json_the_reason_for_nothing_goes_to_stderr(explain: Callable[..., Any]) -> None:
    none = explain({"events": ["who"]}, "--json")
    assert json.loads(none.out) == []
    assert "none has P > 0.5" in none.err
    assert "1 of 1 events are unknown to the model: who" in none.err
    assert "the model does not know 'z'" in explain({"events": EVENTS, "labels": ["z"]}, "--json").err


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"events": ["E0", 7]}, "one.json: events, position 1: expected a name as text, got 7"),
        ({"events": ["E0"], "labels": ["x", None]}, "one.json: labels, position 1: expected a name as text, got None"),
        ({"events": []}, "empty"),
        ({"events": "E0"}, "list of events"),
        ([], "JSON object"),
        ({"events": ["E0", "E1"], "times": [1, 0]}, "times in order"),
        ({"events": ["E0", "E1"], "times": [1]}, "times"),
        ({"events": ["E0"], "times": ["soon"]}, "soon"),
        ({"events": ["E0"], "labels": "x"}, "labels"),
    ],
)
def test_what_is_no_sequence_is_one_line(explain: Callable[..., Any], record: Any, words: str) -> None:
    explain(record).refused(words)


def test_options_of_explain_are_checked(explain: Callable[..., Any]) -> None:
    record = {"events": EVENTS, "labels": ["x"]}
    explain(record, "--alpha", "2").refused("alpha")
    explain(record, "--delta", "-1").refused("delta")
    explain(record, "--label", "z").refused("'z'")
    explain(record, "--also", "nowhere").refused("nowhere")
    explain(record, "--knowledge", "nowhere.json").refused("nowhere.json")
