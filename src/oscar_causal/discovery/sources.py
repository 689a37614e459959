"""What stands where an event is taken out: draws from Tf_x, from the data at large, or nothing at all."""

from __future__ import annotations

from typing import Any

from oscar_causal.data.sequences import Dataset
from oscar_causal.density.adapters import combine, donors, marginal
from oscar_causal.density.deletion import Deleting
from oscar_causal.density.interface import has_event_probs
from oscar_causal.discovery.extensions import OwnLaw, Replacement, is_own
from oscar_causal.errors import UsageError

REPLACEMENTS = {
    "model": "draws from Tf_x given the events before",
    "marginal": "draws from the events of the dataset by their frequency, whatever stands before",
    "donors": "draws from the events in the same tenth of the dataset's sequences",
    "delete": "nothing: the event is taken out and the sequence closes",
}
"""Replacement -> what stands where an event was."""


def with_replacement(model: Any, replacement: str | Replacement, dataset: Dataset) -> Any:
    """The model with both densities that discovery asks; frequencies are those of `dataset`."""
    if is_own(replacement):
        return OwnLaw(model, replacement)
    if replacement == "marginal":
        return combine(labels=model, events=marginal(dataset, model.vocabulary))
    if replacement == "donors":
        return combine(labels=model, events=donors(dataset, model.vocabulary))
    if replacement == "delete":
        return Deleting(model)
    if not has_event_probs(model):
        raise UsageError("replacement: this model has no next-event density; expected marginal, donors or delete")
    return model
