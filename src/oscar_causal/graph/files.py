"""One file that appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

from oscar_causal.data.folders import make_parents, write_bytes
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
    try:
        make_parents(path)
        write_bytes(path, content, force=force)
    except OSError as error:
        raise FolderError(f"{path}: cannot be written: {error.strerror or error}") from error
