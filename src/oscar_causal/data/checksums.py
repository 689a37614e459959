"""`checksums.json`: the SHA-256 of every file of a folder, written last, compared by whatever opens one of them.

A changed file is refused; those that people edit by hand (`EDITED`) are used as they are, with a note. Notes go to the
logger `oscar_causal.data.checksums` at level INFO; the command prints them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from oscar_causal.errors import FolderError

NAME = "checksums.json"
EDITED = ("names.json", "rules.json", "quality.json")
"""Files that people edit: a change is a note."""
KINDS = ("dataset", "model", "folds", "results", "population")
"""Folders that carry checksums since they are written; without them a folder is read with a note."""
TABLES = ("sequences", "why", "verdicts", "evidence", "causes", "statistics")
"""Folders inside such a folder; what else lies below one is a folder of its own."""
_PATH, _HASH = re.compile(r"[\w-][\w./-]{0,99}", re.ASCII), re.compile(r"[0-9a-f]{64}")

log = logging.getLogger(__name__)


def checksums(folder: Path, names: Iterable[str] | None = None) -> dict[str, Any]:
    """The content of `checksums.json` for these files of a folder; by default for every file below it."""
    if names is None:
        files = (path for path in folder.rglob("*") if path.is_file() and path.name != NAME)
        names = (path.relative_to(folder).as_posix() for path in files)
    return {"kind": "checksums", "format_version": 1, "files": {name: sha256(folder / name) for name in sorted(names)}}


def sha256(path: Path) -> str:
    """Of a file's bytes, in hexadecimal; a process reads a file that does not change once."""
    stat = path.stat()
    return _sha256(path, stat.st_ino, stat.st_size, stat.st_ctime_ns)


def check_file(path: Path) -> None:
    """Compare a file with the `checksums.json` of its folder; without one there is nothing to compare.

    A part of a table that is not listed is foreign; another file (the plan of a training under way) may be there. A
    file that cannot be read is left to the reader, which says why.
    """
    folder = path.parent.parent if path.parent.name in TABLES else path.parent
    if path.name == NAME or not (folder / NAME).exists() or not path.is_file():
        return
    wanted = _listed(folder / NAME).get(path.relative_to(folder).as_posix())
    if wanted is None and path.parent == folder and path.name not in EDITED:
        return
    try:
        found = sha256(path)
    except OSError:
        return
    if found == wanted:
        return
    told = "no such file" if wanted is None else f"SHA-256 {wanted[:12]}…"
    if path.name in EDITED:
        log.info(f"{path}: edited since the folder was written ({NAME} has {told}); used as it is")
        return
    raise FolderError(
        f"{path}: damaged or changed since it was written: expected {told} ({NAME}), got {found[:12]}…; "
        "restore it from a copy or make the folder again"
    )


def check_folder(folder: Path) -> None:
    """See that every file listed in `checksums.json` is there; a folder of an earlier version, without it, is noted."""
    if not (folder / NAME).exists():
        whole = folder.parent if (folder.parent / "folds.json").exists() else folder
        log.info(f"{whole}: carries no checksums ({NAME}): damage in it would not be noticed")
        return
    for name in _listed(folder / NAME):
        path = folder / name
        if path.exists():
            continue
        if path.name not in EDITED:
            raise FolderError(f"{path}: missing; restore it from a copy or make the folder again")
        log.info(f"{path}: removed since the folder was written")


def edited_hashes(folder: Path) -> dict[str, str]:
    """The files of a folder, and of its folds, that people may edit, with their SHA-256: for `run.json`."""
    found = [path for name in EDITED for pattern in (name, f"fold-*/{name}") for path in sorted(folder.glob(pattern))]
    for path in found:
        check_file(path)
    return {path.relative_to(folder).as_posix(): sha256(path) for path in found}


def _listed(path: Path) -> dict[str, str]:
    stat = path.stat()
    return _read(path, stat.st_ino, stat.st_size, stat.st_ctime_ns)


@lru_cache(64)
def _read(path: Path, *_stat: int) -> dict[str, str]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path}: expected a JSON object, cannot read it: {error}") from error
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, dict) or (content.get("kind"), content.get("format_version")) != ("checksums", 1):
        raise FolderError(f"{path}: expected kind 'checksums', format_version 1 and 'files', got something else")
    for name, value in files.items():
        if not _PATH.fullmatch(name) or not isinstance(value, str) or not _HASH.fullmatch(value):
            raise FolderError(f"{path}: expected paths with their SHA-256 in hexadecimal, got {name[:80]!r}")
    return files


@lru_cache(4096)
def _sha256(path: Path, *_stat: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
