"""What the processes of `bench_fleet.py` do: each sequence meets the model once, whoever wants to know.

One-shot evidence with N contexts is the row `intervention`; the same evidence and 20 more contexts for close looks are
`fused` with N + 20, for every population that asks (on the map, off the map).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from oscar_causal.data.batches import encode
from oscar_causal.data.folders import read_json
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.vocabulary import UNKNOWN_ID
from oscar_causal.density.folds import load_models
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery import fused
from oscar_causal.discovery.batched import are_fast, by_length, explain_together, room_for
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.evidence import FleetEvidence
from oscar_causal.discovery.fused import FusedConfig, Own
from oscar_causal.discovery.intervention import InterventionConfig, LabelEvidence
from oscar_causal.discovery.prior_files import read_prior
from oscar_causal.discovery.results import EVIDENCE_SCHEMA, VERDICT_SCHEMA
from oscar_causal.discovery.subject import prepare
from oscar_causal.graph.calibration import Calibration, calibrate
from oscar_causal.graph.rule_recovery import RuleProposal, recover_rules

ALONE = "intervention"
Judged = dict[str, list[Boundary]]
"""`ALONE` or the name of a population -> explained pairs."""
_state: dict[str, Any] = {}


@dataclass(frozen=True)
class Task:
    """Some sequences (or labels), and the populations that judge them."""

    names: tuple[str, ...]
    populations: tuple[str, ...] = ()
    """Folders under the scratch folder."""


def load(model: str, scratch: str, device: str, contexts: int) -> None:
    """Open model and sequences once; on a GPU the path of `discover` in half precision."""
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    models, data = load_models(model, device=device), read_dataset(f"{scratch}/part")
    if device.startswith("cuda"):
        models = models.compiled(torch.bfloat16)
    encoded = encode(data, models.vocabulary, max_length=models.max_length, channels=models.channels)
    looks = FusedConfig()
    settings = (InterventionConfig(contexts=contexts + looks.looks), looks)
    _state.update(models=models, data=data, encoded=encoded, settings=settings, scratch=Path(scratch), priors={})


def explain(task: Task) -> Judged:
    """One-shot evidence of the sequences, and what each population makes of it."""
    data, models = _state["data"], _state["models"].models
    rows, priors = data.index_of(task.names), {name: _prior(name) for name in task.populations}
    if are_fast(models):
        order = [int(rows[k]) for k in by_length(data.lengths[rows].tolist())]
        room = room_for(int(data.lengths[rows].max()), models[0].vocabulary.size)
        parts = explain_together(lambda met, row: _explain(met[0], row, priors), models, order, in_flight=room)
    else:
        parts = [_explain(models[0], int(row), priors) for row in rows]
    return {name: [b for part in parts for b in part[name]] for name in (ALONE, *priors)}


def _explain(model: Any, row: int, priors: dict[str, Any]) -> Judged:
    data, encoded, settings = _state["data"], _state["encoded"], _state["settings"]
    labels = np.sort(encoded.labels[row]).astype(np.int64)
    sequence_id, subject_id = data.sequence_ids[row].as_py(), data.subject_ids[row].as_py()
    sequence, never = sequence_contexts(encoded, row), frozenset({UNKNOWN_ID})
    subject = prepare(model, sequence, sequence_id=sequence_id, seed=0, shuffle=True, excluded=never)
    if not len(labels) or not subject.testable.any():
        return {name: [] for name in (ALONE, *priors)}
    names = [model.vocabulary.name(int(t)) for t in subject.types]
    own = fused.one_shot(model, subject, labels, names, settings)
    found = {ALONE: own}
    for name, prior in priors.items():
        found[name] = fused.explain(model, subject, labels, names, (prior, subject_id), settings, own=own)
    told = [model.vocabulary.labels[int(label)] for label in labels]
    return {name: _boundaries(sequence_id, told, *part) for name, part in found.items()}


def _boundaries(
    sequence_id: str, labels: Sequence[str], items: Sequence[LabelEvidence], contexts: int
) -> list[Boundary]:
    return [
        Boundary(
            sequence_id,
            label,
            True,
            item.observed,
            item.evidence,
            contexts=contexts,
            flags=item.flags,
            ranked_by=item.ranked_by,
        )
        for label, item in zip(labels, items, strict=True)
    ]


def tables(items: Iterable[Boundary]) -> tuple[pa.Table, pa.Table]:
    listed = list(items)
    verdicts = [{name: _plain(getattr(b, name)) for name in VERDICT_SCHEMA.names} for b in listed]
    evidence = [
        {"sequence_id": b.sequence_id, "label": b.label}
        | {name: _plain(getattr(e, name)) for name in EVIDENCE_SCHEMA.names if hasattr(e, name)}
        for b in listed
        for e in b.evidence
    ]
    return pa.Table.from_pylist(verdicts, schema=VERDICT_SCHEMA), pa.Table.from_pylist(evidence, schema=EVIDENCE_SCHEMA)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def own_of(items: Sequence[Boundary]) -> dict[str, Own]:
    """Sequence id -> its one-shot evidence, for looks that need not ask for it again."""
    found: dict[str, tuple[list[LabelEvidence], int]] = {}
    for item in items:
        evidence = LabelEvidence(float(item.probability or 0.0), item.evidence, item.flags, item.ranked_by or "slopes")
        found.setdefault(item.sequence_id, ([], item.contexts))[0].append(evidence)
    return found


def look(task: tuple[str, dict[str, list[str]], dict[str, Own]]) -> FleetEvidence:
    """Close looks at some sequences: the population whose first prior chooses events, their labels, their evidence."""
    population, chosen, own = task
    how = Calibration(read_prior(_state["scratch"] / population), _state["settings"], own=own)
    return calibrate(_state["models"], _state["data"], chosen, how)


def recover(task: Task) -> list[RuleProposal]:
    """The rules of some labels, from the training cars."""
    if "mined" not in _state:
        _state["mined"] = read_dataset(_state["scratch"] / "mined")
    candidates = read_json(_state["scratch"] / task.populations[0] / "candidates.json")
    return recover_rules(_state["models"].models[0], _state["mined"], {name: candidates[name] for name in task.names})


def _prior(name: str) -> Any:
    if name not in _state["priors"]:
        _state["priors"][name] = read_prior(_state["scratch"] / name)
    return _state["priors"][name]
