"""Folders and files that appear whole or not at all.

A folder is written inside `<out>.partial`, which one run at a time holds (a lock that ends with its process, also
between containers on one disk), flushed to the disk and renamed when complete. What a killed run leaves behind carries
`.partial` in its name, is never read as a result, and is removed by the next run into the same `out`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from oscar_causal.data.checksums import KINDS, check_file, check_folder
from oscar_causal.errors import FolderError, UsageError

LOCK, NEW = "lock", "new.partial"
"""In `<out>.partial`: the file that the run holds, and the folder that becomes `out`."""
CLAIMS = 20
"""Tries to make and hold a folder that other runs remove at the same time."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""Of renameat2(2)."""


@contextmanager
def new_folder(out: Path | str, *, force: bool = False) -> Iterator[Path]:
    """Yield an empty temporary folder that becomes `out` when the block ends without an exception.

    An existing `out`, or an unfinished run that would become it, is an error unless `force`, which replaces both once
    the new folder is complete. A second run into the same `out` is an error.
    """
    out = Path(out)
    refuse_existing(out, force=force)
    partial = partial_of(out)
    made: list[Path] = []
    try:
        made = make_parents(out)
        with claim(partial, what="writing"):
            try:
                refuse_existing(out, force=force)  # another run may have ended in between
                refuse_unfinished(partial, force=force)
                _remove(partial / NEW)
                (partial / NEW).mkdir()
                yield partial / NEW
                move_into_place(partial / NEW, out, force=force)
                empty(partial)
            finally:
                _remove(partial / NEW)
                let_go(partial)
    except OSError as error:
        raise FolderError(f"{out}: cannot be written: {error.strerror or error}") from error
    finally:
        for folder in made if not out.exists() else []:
            with suppress(OSError):  # somebody else uses it by now
                folder.rmdir()


def partial_of(out: Path) -> Path:
    """Where a run that will become `out` does its work."""
    return out.with_name(f"{out.name}.partial")


def claim(partial: Path, *, what: str) -> IO[bytes]:
    """Make a folder and hold it for this process alone; one that another run holds is an error."""
    gone: OSError | None = None
    for _ in range(CLAIMS):
        try:
            partial.mkdir(parents=True, exist_ok=True)
            return exclusive(partial / LOCK, what=what)
        except (FileNotFoundError, FileExistsError) as error:  # another run ended and removed the folder in between
            if partial.exists() and not partial.is_dir():
                raise
            gone = error
    raise UsageError(f"{partial}: another run is {what} here") from gone


def refuse_unfinished(partial: Path, *, force: bool, but: Collection[str] = ()) -> None:
    """What another run left to go on from is not thrown away unasked; `but`: names that are nothing to go on from."""
    if not force and any(path.name not in (LOCK, NEW, *but) for path in partial.iterdir()):
        raise UsageError(f"{partial}: an unfinished run is there; choose another --out or say --force to replace it")


def empty(partial: Path) -> None:
    """Remove all but the lock from a folder that this run holds."""
    for path in partial.iterdir():
        if path.name != LOCK:
            _remove(path)


def let_go(partial: Path) -> None:
    """Remove a folder that this run holds, unless there is more in it than the lock."""
    with suppress(OSError):  # it is gone, or the next run is in it already
        if [path.name for path in partial.iterdir()] == [LOCK]:
            (partial / LOCK).unlink()
            partial.rmdir()


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
    if not exists and _aside(out).exists():
        raise UsageError(f"{_aside(out)}: a run was killed while it replaced {out.name}: rename this folder to that")


def move_into_place(partial: Path, out: Path, *, force: bool) -> None:
    """Rename a complete folder to `out`, all of it on the disk; with `force` an existing `out` is exchanged for it."""
    flush(partial)
    if force and out.exists():
        _exchange(partial, out)
        _remove(partial)
    else:
        partial.rename(out)
    _flush_one(out.parent)


def _exchange(new: Path, old: Path) -> None:
    """Let two folders exchange their names in one step, so that no moment has neither.

    Where the system or the disk cannot (other than Linux, some network disks) it takes three renames: a kill between
    the first two leaves the old folder as `<out>.partial-old`, which `refuse_existing` tells.
    """
    if _exchanged_at_once(new, old):
        return
    aside = _aside(old)
    _remove(aside)  # of a run that was killed after it had put the new folder in place
    old.rename(aside)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise
    aside.rename(new)


def _exchanged_at_once(new: Path, old: Path) -> bool:
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number))


def _aside(out: Path) -> Path:
    return out.with_name(f"{out.name}.partial-old")


def _remove(path: Path) -> None:
    """A folder, a file or a link that is needed no more."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Wait until a file, or a folder with all in it, is on the disk: after a power cut its name may else hold half."""
    for part in [*path.rglob("*"), path]:
        if not part.is_symlink():
            _flush_one(part)


def _flush_one(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed run left half written in a folder that is about to be complete."""
    for path in sorted(folder.rglob("*.partial*"), reverse=True):  # the deepest first
        _remove(path)


def exclusive(path: Path, *, what: str, wait: bool = False) -> IO[bytes]:
    """Open and lock a file for this process alone; a second holder is an error, or with `wait` is waited for. A kill
    releases it; so does close()."""
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
        busy: OSError | None = None
    except (BlockingIOError, FileNotFoundError) as error:
        busy = error
    except OSError as error:
        file.close()
        raise FolderError(f"{path}: cannot be locked, which this disk must allow: {error.strerror}") from error
    file.close()  # held by another run, or moved away by one that has just ended
    raise UsageError(f"{path.parent}: another run is {what} here") from busy


def write_bytes(path: Path, content: bytes, *, force: bool = True) -> None:
    """Write a file that appears whole or not at all; without `force` an existing one is an error."""
    partial = partial_of(path)
    with exclusive(partial, what=f"writing {path.name}") as file:
        try:
            if not force and path.exists():
                raise UsageError(f"{path}: exists already; choose another --out or say --force to replace it")
            file.truncate()
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str) -> None:
    """Write a text file that appears whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


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
