"""One file that appears whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from oscar_causal.data.folders import make_parents
from oscar_causal.errors import FolderError, UsageError


def check_free(path: Path | str, *, force: bool = False) -> None:
    """Raise unless a file may be written here; asked before long work, and again by `write_file`."""
    path = Path(path)
    try:
        if path.is_dir():
            raise UsageError(f"{path}: expected a file to write, found a folder")
        if path.exists() and not force:
            raise UsageError(f"{path}: exists already; choose another --out or say --force to replace it")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be a file's name: {getattr(error, 'strerror', None) or error}") from error


def write_file(path: Path | str, content: bytes, *, force: bool = False) -> None:
    """Write a file under a temporary name and rename it; an existing one is an error unless `force`."""
    path = Path(path)
    check_free(path, force=force)
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        make_parents(path)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):  # nothing was begun
            partial.unlink()
        raise FolderError(f"{path}: cannot be written: {error.strerror or error}") from error
