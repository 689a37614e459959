"""The named fleets, and knobs given as text."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, get_type_hints

from oscar_causal.data.synthetic.config import PUBLISHED_SIZES, PUBLISHED_TAIL, FleetConfig
from oscar_causal.errors import UsageError

_PAPER = FleetConfig(
    event_types=29_100,
    labels=474,
    sequences=300_000,
    mean_length=150.0,
    sd_length=90.0,
    boundary_sizes=PUBLISHED_SIZES + PUBLISHED_TAIL,
    probabilistic_labels=0.05,
)

PRESETS: dict[str, FleetConfig] = {
    "demo": FleetConfig(
        event_types=320,
        labels=12,
        sequences=8_000,
        mean_length=64.0,
        sd_length=20.0,
        event_tail=0.8,
        labels_per_sequence=1.1,
        label_tail=0.3,
        boundary_sizes=((1, 2), (2, 4), (3, 4), (4, 2)),
        shared_causes=0.2,
        or_share=0.4,
        near_misses=0.5,
        symptoms=0.6,
        precursors=0.4,
    ),
    "small": FleetConfig(probabilistic_labels=0.05),
    "paper": _PAPER,
    "hard": replace(
        _PAPER,
        near_misses=0.8,
        symptoms=0.9,
        precursors=0.8,
        redundant_causes=0.3,
        hidden_driver=0.2,
        lost_labels=0.05,
        false_labels=0.01,
        drift=0.05,
        probabilistic_labels=0.1,
    ),
    "temporal": replace(
        _PAPER, temporal_labels=0.95, shared_causes=0.4, decoys=0.9, redundant_causes=0.05, near_misses=0.7
    ),
}
"""`demo`: what two cores learn in two minutes. `small`: for laptops. `paper`: the sizes of the paper, mild. `hard`: the
same sizes with all that a boolean fleet can have. `temporal`: the same sizes with order, windows, counts and routes."""


def preset(name: str, **overrides: Any) -> FleetConfig:
    """A named fleet with some knobs changed; an unknown name, knob or value is a UsageError.

    >>> preset("demo", sequences=100).labels
    12
    """
    if name not in PRESETS:
        raise UsageError(f"preset: expected one of {', '.join(PRESETS)}, got {name!r}")
    known = [field.name for field in fields(FleetConfig)]
    for key in overrides:
        if key not in known:
            raise UsageError(f"knob {key!r}: expected one of {', '.join(known)}")
    return replace(PRESETS[name], **overrides)


def knob_help() -> dict[str, str]:
    """What each knob does: the docstrings under the fields of FleetConfig.

    >>> knob_help()["labels"]
    'Different labels, Y.'
    """
    body = ast.parse(inspect.getsource(FleetConfig)).body[0].body  # type: ignore[attr-defined]
    texts = {}
    for field, below in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            texts[field.target.id] = " ".join(below.value.value.split())
    return texts


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Knobs from texts `KEY=VALUE`, each read as its knob's type.

    >>> parse_settings(["lost_labels=0.05", "null=true", "boundary_sizes=1:3,2:4"])
    {'lost_labels': 0.05, 'null': True, 'boundary_sizes': ((1, 3.0), (2, 4.0))}
    """
    hints = get_type_hints(FleetConfig)
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"--set {setting!r}: expected KEY=VALUE")
        if key not in hints:
            raise UsageError(f"--set {setting!r}: expected a knob among {', '.join(hints)}, got {key!r}")
        if key in values:
            raise UsageError(f"--set {setting!r}: expected each knob once, got {key!r} twice")
        values[key] = _parse(setting, text.strip(), hints[key])
    return values


def _parse(setting: str, text: str, kind: Any) -> Any:
    try:
        if kind is int:
            return int(text.replace("_", "").replace(",", ""))
        if kind is float:
            return float(text)
        if kind is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        pairs = (pair.split(":") for pair in text.split(","))
        return tuple((int(size), float(weight)) for size, weight in pairs)
    except (ValueError, KeyError) as error:
        names = {int: "a whole number", float: "a number", bool: "true or false"}
        raise UsageError(f"--set {setting!r}: expected {names.get(kind, 'SIZE:WEIGHT,SIZE:WEIGHT,...')}") from error
