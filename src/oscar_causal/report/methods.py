"""A run in sentences fit for the methods section of a paper: what was done, what is assumed, what is promised.

Every figure comes from the run's own files. What they do not say is not said; what could not be found is listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oscar_causal.data.folders import read_json
from oscar_causal.discovery.intervention import TIE_FLAG
from oscar_causal.discovery.results import read_table
from oscar_causal.discovery.sources import REPLACEMENTS
from oscar_causal.report.entries import Entry
from oscar_causal.report.method_words import assumption_words, error_words, estimator_words
from oscar_causal.report.sources import Sources, open_sources


@dataclass(frozen=True)
class Methods:
    """Paragraph -> its sentences, in the order of a methods section, and what could not be found."""

    paragraphs: dict[str, str]
    missing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All paragraphs."""
        return "\n\n".join(self.paragraphs.values())

    def _repr_html_(self) -> str:
        """What a notebook shows: the paragraphs."""
        return "".join(f"<p>{escape(text)}</p>" for text in self.paragraphs.values())

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"paragraphs": self.paragraphs, "text": self.text, "missing": list(self.missing)}


def explain_run(results: Path | str, *, dataset: Path | str | None = None, model: Path | str | None = None) -> Methods:
    """Describe a results folder; `dataset` and `model` say where those of the run are now, if they have moved."""
    sources = open_sources(results, dataset=dataset, model=model)
    parts: dict[str, Callable[[Sources], str]] = {
        "data": _data,
        "model": _model,
        "estimand": _estimand,
        "assumptions": lambda sources: assumption_words(sources.run),
        "error control": lambda sources: error_words(sources.run),
        "results": _results,
        "reproducibility": _reproducibility,
    }
    written = {name: write(sources) for name, write in parts.items()}
    return Methods({name: text for name, text in written.items() if text}, sources.missing)


def _data(sources: Sources) -> str:
    run, data = sources.run, sources.dataset
    told = run.get("dataset") or {}
    place = told.get("path") if data is None else data.path
    name = f"{Path(str(place)).name} (content digest {str(told.get('digest'))[:12]})"
    if data is None:
        return f"Data: the dataset {name}, which was not at hand when this was written."
    lengths = data.lengths
    sentences = [
        f"The dataset {name} holds {len(data):,} sequences of {_distinct(data.subject_ids):,} subjects, with "
        f"{int(lengths.sum()):,} events of {len(data.event_names):,} types (median {np.median(lengths):g} per "
        f"sequence) and {len(data.label_names):,} outcome labels; {int(data.labelled.sum()):,} sequences are labelled."
    ]
    if run.get("sequences") is not None:
        sentences.append(f"{run['sequences']:,} sequences were put to the method.")
    return " ".join([*sentences, *_odd(run.get("counts") or {})])


def _odd(counts: dict[str, int]) -> list[str]:
    words = {
        "cut": "sequences were cut to the most recent events that the model takes",
        "unknown_events": "events were of types that the model does not know",
        "unknown_labels": "recorded labels were not known to the model and were not explained",
        "shorter_than_c": "sequences were shorter than the method's least context",
    }
    return [f"{counts[name]:,} {text}." for name, text in words.items() if counts.get(name)]


def _model(sources: Sources) -> str:
    if not sources.run.get("model"):
        return "No predictive model is involved: the method works on counts of the dataset."
    if sources.model is None:
        return "The label model of the run was not at hand when this was written."
    folds = sorted(sources.model.glob("fold-*"))
    trained = [_entry(part / "training.json") for part in folds or [sources.model]]
    network = _entry((folds or [sources.model])[0] / "config.json").entry("network")
    return " ".join([_network(network, trained, len(folds)), *_quality(sources.qualities)])


def _quality(qualities: tuple[dict[str, Any], ...]) -> list[str]:
    """How well labels are predicted, as far as the model's files say."""
    known = [Entry.of(quality, "quality.json of the model") for quality in qualities]
    labels = [part for part in (quality.entry("labels") for quality in known) if part is not None]
    weighted = [part for part in (entry.entry("weighted") for entry in labels) if part is not None]
    f1 = [value for value in (part.number("f1") for part in weighted) if value is not None]
    judged = known[0].entry("per_label") if known else None
    every = [] if judged is None else [bool(row.flag("trusted")) for _, row in judged.items()]
    rest = "" if all(every) else ", verdicts on the others are marked"
    found = []
    if f1:
        told = known[0].text("evaluated_on") or "held-out sequences"
        found.append(f"Label predictions reached a weighted F1 of {np.mean(f1):.3f} on {told}.")
    if every:
        found.append(f"{sum(every):,} of {len(every):,} labels met the criteria for being judged{rest}.")
    return found


def _network(network: Entry | None, trained: list[Entry], folds: int) -> str:
    layers, width = (None if network is None else network.number(name) for name in ("layers", "width"))
    size = f"{layers} layers of width {width}"
    versions = trained[0].entry("versions")
    torch = None if versions is None else versions.text("torch")
    steps = sum(part.number("steps") or 0 for part in trained)
    how = [f"{steps:,} optimiser steps"] if steps else []
    how += [f"PyTorch {torch}"] if torch else []
    amount = f" ({', '.join(how)})" if how else ""
    if folds:
        seen = "each on the subjects of the other folds, so that every subject is judged by one that has not seen it"
        return f"{folds} autoregressive Transformers ({size}) for next events and labels were trained, {seen}{amount}."
    sequences = trained[0].number("sequences")
    where = f" on {sequences:,} sequences" if sequences else ""
    return f"An autoregressive Transformer ({size}) for next events and labels was trained{where}{amount}."


def _estimand(sources: Sources) -> str:
    run = sources.run
    config = run.get("config") or {}
    sentences = [f"Estimand: {run.get('estimand')}.", estimator_words(run)]
    replacement = config.get("replacement")
    if replacement and run.get("model"):
        told = REPLACEMENTS.get(replacement, f"draws from a law of the user's ({replacement})")
        sentences.append(f"What stood in place of a replaced event: {told}.")
    excluded = config.get("excluded") or (config.get("knowledge") or {}).get("excluded")
    if excluded:
        sentences.append(f"By background knowledge {len(excluded):,} event types were never tested or accepted.")
    return " ".join(sentence for sentence in sentences if sentence)


def _results(sources: Sources) -> str:
    verdicts, causes = (read_table(sources.results, name) for name in ("verdicts", "causes"))
    inhibitors = pc.sum(pc.equal(causes["verdict"], "inhibitor")).as_py() or 0
    empty = len(verdicts) - len(set(zip(*(causes[key].to_pylist() for key in ("sequence_id", "label")), strict=True)))
    sentences = [
        f"{len(verdicts):,} pairs of a sequence and a label were explained: {len(causes) - inhibitors:,} causes and "
        f"{inhibitors:,} inhibitors were accepted, and {empty:,} pairs had none.",
        *_acceptance(causes),
        *_ranking(verdicts),
    ]
    seen = pc.sum(verdicts["seen_in_training"]).as_py()
    if seen is not None:
        told = "None of these verdicts concerns" if not seen else f"{seen:,} of these verdicts concern"
        sentences.append(f"{told} a sequence of a subject that the judging model was trained on.")
    untrusted = pc.sum(pc.equal(verdicts["trusted"], False)).as_py()
    if untrusted:
        sentences.append(f"{untrusted:,} concern labels that the model cannot judge.")
    sentences += _doubts(verdicts, causes)
    return " ".join(sentences)


def _acceptance(causes: pa.Table) -> list[str]:
    """How many of the accepted events no test has shown, where the run recorded it."""
    ways = causes["accepted_by"].to_pylist()
    if not any(ways):
        return []
    return [f"Of the accepted events {ways.count('test'):,} were accepted by test, {ways.count('score'):,} by score."]


def _ranking(verdicts: pa.Table) -> list[str]:
    """What chose the events to test, as far as the run recorded it."""
    ways = verdicts["ranked_by"].to_pylist()
    words = {"slopes": "slopes of the label model", "screen": "a screen of random contexts"}
    counts = [(ways.count(way), text) for way, text in words.items() if way in ways]
    if not counts:
        return []
    if len(counts) == 1 and counts[0][0] == len(ways):
        return [f"The events to test were chosen by {counts[0][1]}."]
    told = " and ".join(f"by {text} in {count:,} pairs" for count, text in counts)
    return [f"The events to test were chosen {told}."]


def _doubts(verdicts: pa.Table, causes: pa.Table) -> list[str]:
    found = []
    tied = sum(TIE_FLAG in (flags or []) for flags in verdicts["flags"].to_pylist())
    if tied:
        found.append(
            f"In {tied:,} pairs the prediction depended on the stored order of events with the same timestamp."
        )
    near = pc.sum(causes["borderline"]).as_py() if "borderline" in causes.column_names else None
    if near:
        found.append(f"{near:,} accepted events lie so near a threshold that another seed may decide otherwise.")
    return found


def _reproducibility(sources: Sources) -> str:
    run = sources.run
    version = (run.get("versions") or {}).get("oscar", "of unknown version")
    sentences = [f"Analyses were run with OSCAR {version} (package oscar-causal)"]
    if run.get("seed") is not None:
        sentences.append(f"seed {run['seed']}")
    if run.get("precision"):
        sentences.append(f"{run['precision']} arithmetic")
    told = ", ".join(sentences)
    model = str((run.get("model") or {}).get("digest") or "")[:12]
    return f"{told}{f', model digest {model}' if model else ''}, run fingerprint {str(run.get('fingerprint'))[:12]}."


def _distinct(ids: pa.Array) -> int:
    return int(pc.count_distinct(ids).as_py())


def _entry(path: Path) -> Entry:
    """A JSON file of the model; one that is not there says nothing."""
    return Entry.of(read_json(path) if path.exists() else {}, f"{path.name} of the model")
