"""Folders and files that appear whole or not at all.

Everything is written under a temporary name beside its destination and renamed when complete; what a crash leaves
behind carries `.partial` in its name and is never read as a result.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from oscar_causal.data.checksums import KINDS, check_file, check_folder
from oscar_causal.errors import FolderError, UsageError

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@contextmanager
def new_folder(out: Path | str, *, force: bool = False) -> Iterator[Path]:
    """Yield an empty temporary folder that becomes `out` when the block ends without an exception.

    An existing `out` is an error unless `force`, which replaces it only once the new one is complete.
    """
    out = Path(out)
    refuse_existing(out, force=force)
    partial = out.with_name(f"{out.name}.partial-{os.getpid()}")
    made: list[Path] = []
    try:
        made = make_parents(out)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        yield partial
        move_into_place(partial, out, force=force)
    except OSError as error:
        raise FolderError(f"{out}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        for folder in made if not out.exists() else []:
            with suppress(OSError):  # somebody else uses it by now
                folder.rmdir()


def make_parents(out: Path) -> list[Path]:
    """Make the folders above `out`; returns those that did not exist, the deepest first."""
    missing = [folder for folder in out.parents if not folder.exists()]
    out.parent.mkdir(parents=True, exist_ok=True)
    return missing


def refuse_existing(out: Path, *, force: bool) -> None:
    """Raise unless `out` is free or may be replaced."""
    try:
        exists = out.exists() or out.is_symlink()
    except (OSError, ValueError) as error:
        raise UsageError(f"{out}: cannot be a folder's name: {getattr(error, 'strerror', None) or error}") from error
    if exists and not force:
        raise UsageError(f"{out}: exists already; choose another --out or say --force to replace it")
    if exists and not out.is_dir():
        raise UsageError(f"{out}: is a file, not a folder; --force replaces folders only")
    if not out.name or (exists and Path.cwd().resolve().is_relative_to(out.resolve())):
        raise UsageError(f"{out}: is the current folder or holds it; --force does not replace that")


def move_into_place(partial: Path, out: Path, *, force: bool) -> None:
    """Rename `partial` to `out`; with `force` an existing `out` steps aside first, is removed last, or comes back."""
    aside = out.with_name(f"{out.name}.partial-old-{os.getpid()}")
    if force and out.exists():
        out.rename(aside)
    try:
        partial.rename(out)
    except OSError:
        if aside.exists():
            aside.rename(out)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed run left half written in a folder that is about to be complete."""
    for path in sorted(folder.rglob("*.partial*"), reverse=True):  # the deepest first
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def exclusive(path: Path, *, what: str) -> IO[str]:
    """Open and lock a file for this process alone; a second holder is an error. A kill releases it; so does close()."""
    lock = path.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise UsageError(f"{path.parent}: another run is {what} here") from error
    return lock


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically: sorted keys, two spaces, no NaN."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def parse_json(text: str, *, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """JSON without NaN, numbers beyond float64 and halves of surrogate pairs: those are a ValueError, as any bad JSON.

    `pairs` makes something else than a dictionary of an object's pairs. Too deep a text is a RecursionError.

    >>> parse_json('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=pairs)
    if _SURROGATE.search(text):
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # a pair is one character, a half is an error
    return value


def read_json(path: Path) -> dict[str, Any]:
    """Read one JSON object; a missing, damaged or non-object file is a FolderError that names it."""
    check_file(path)
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FolderError(f"{path}: missing") from error
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path}: expected a JSON object, cannot read it: {error}") from error
    if not isinstance(value, dict):
        raise FolderError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def check_format(info: dict[str, Any], path: Path, *, kind: str, newest: int) -> int:
    """Return the format version of a folder's main JSON file, or say in one line why it cannot be read."""
    found_kind, version = info.get("kind"), info.get("format_version")
    if found_kind != kind:
        raise FolderError(f"{path}: expected an OSCAR {kind} (kind = {kind!r}), got kind = {found_kind!r}")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FolderError(f"{path}: expected format_version to be a positive whole number, got {version!r}")
    if version > newest:
        raise FolderError(
            f"{path}: written by a newer OSCAR (format {version}; this one reads up to {newest}): upgrade to read it"
        )
    if kind in KINDS:
        check_folder(path.parent)
    return version


def finite_or_none(value: float) -> float | None:
    """JSON has no NaN: a number that does not exist is null."""
    return float(value) if math.isfinite(value) else None


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
