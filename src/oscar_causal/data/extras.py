"""Optional packages: which extra of this distribution brings which, and one clear line when it is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oscar_causal.errors import MissingExtra

EXTRAS = {
    "bench": ("sklearn", "lightgbm"),
    "hf": ("transformers",),
    "meds": ("meds",),
    "pandas": ("pandas",),
    "ray": ("ray",),
    "serve": ("fastapi", "uvicorn"),
    "tensorboard": ("tensorboard",),
}
"""Extra -> modules it brings."""


def load_extra(module: str, what: str) -> Any:
    """Import an optional module; when it is missing, say what needs it and how to get it.

    >>> load_extra("json", "reading JSON").__name__
    'json'
    >>> load_extra("no_such_module", "flying")
    Traceback (most recent call last):
    oscar_causal.errors.MissingExtra: flying needs the package no_such_module: pip install no_such_module
    """
    try:
        return import_module(module)
    except ImportError as error:
        extra = next((name for name, modules in EXTRAS.items() if module.split(".")[0] in modules), None)
        how = f"'oscar-causal[{extra}]'" if extra else module
        raise MissingExtra(f"{what} needs the package {module}: pip install {how}") from error
