"""The folder of an unfinished training run: one run at a time, resumable, gone when there is nothing to go on from.

Under torchrun the main process keeps the folder; the others only write nothing and wait.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch

from oscar_causal.data.folders import (
    LOCK,
    check_format,
    claim,
    empty,
    let_go,
    move_into_place,
    partial_of,
    read_json,
    refuse_existing,
    refuse_unfinished,
    remove_leftovers,
    write_json,
)
from oscar_causal.density.precision import refuse_other_versions
from oscar_causal.errors import FolderError, OscarError, UsageError

PLAN, CARD = "plan.json", "README.md"
"""The card is a model's last file: where it is, the model is trained."""


@contextmanager
def training_folder(out: Path, plan: Mapping[str, Any], *, resume: bool, force: bool) -> Iterator[Path]:
    """Yield `<out>.partial`, which becomes `out` when the block ends without an exception.

    An interrupted block leaves the folder when there is a checkpoint or a finished fold in it, else nothing. `plan`
    says what the run is; going on with another plan is an error. `force` without `resume` replaces an unfinished run.
    """
    partial = partial_of(out)
    lock = _everywhere(lambda: _take(out, plan, resume=resume, force=force))
    try:
        yield partial
        processes().wait_for_everyone()
        if is_main_process():
            remove_leftovers(partial)
            move_into_place(partial, out, force=force)
            for name in (LOCK, PLAN):  # last: until it has its name, a killed run needs its plan to go on
                (out / name).unlink(missing_ok=True)
        processes().wait_for_everyone()
    except OSError as error:
        raise FolderError(f"{partial}: cannot be written: {error.strerror or error}") from error
    finally:
        if lock is not None:
            if not unfinished(out):
                shutil.rmtree(partial, ignore_errors=True)
            lock.close()


def unfinished(out: Path) -> bool:
    """Is there a run to go on from: a checkpoint, a finished fold, or all but the folder's name?"""
    partial = partial_of(out)
    return (partial / PLAN).exists() and any(
        next(partial.glob(pattern), None) is not None
        for pattern in ("checkpoint-*[0-9]", "fold-*/checkpoint-*[0-9]", CARD, f"fold-*/{CARD}")
    )


def threads_of(partial: Path) -> int:
    """Threads that the run in this folder began with: it goes on with as many, wherever it is resumed."""
    plan = read_json(partial / PLAN) if (partial / PLAN).exists() else {}
    return int(plan.get("threads", torch.get_num_threads()))


def processes() -> Any:
    """accelerate's view of the processes of this run (torchrun starts several; on a CPU they talk by gloo)."""
    from accelerate import PartialState

    return PartialState(cpu=not torch.cuda.is_available())


def is_main_process() -> bool:
    """Does this process write the files?"""
    return bool(processes().is_main_process)


def _take(out: Path, plan: Mapping[str, Any], *, resume: bool, force: bool) -> IO[bytes]:
    """Lock the folder and see that it is free or holds the same run."""
    refuse_existing(out, force=force)
    partial = partial_of(out)
    try:
        lock = claim(partial, what="training")
    except OSError as error:
        raise FolderError(f"{partial}: cannot be written: {error.strerror or error}") from error
    try:
        refuse_existing(out, force=force)  # another run may have ended in between
        if not (partial / PLAN).exists():
            refuse_unfinished(partial, force=force)
        if not unfinished(out) or (force and not resume):
            empty(partial)
            write_json(partial / PLAN, {"kind": "training", "format_version": 1, **plan})
        elif not resume:
            raise UsageError(f"{partial}: an unfinished run is there; say --resume to go on or --force to replace it")
        else:
            _compare(partial / PLAN, plan)
    except (OscarError, OSError) as error:
        if isinstance(error, OSError) and not unfinished(out):
            shutil.rmtree(partial, ignore_errors=True)
        let_go(partial)
        lock.close()
        if isinstance(error, OscarError):
            raise
        raise FolderError(f"{partial}: cannot be written: {error.strerror or error}") from error
    return lock


def _compare(path: Path, plan: Mapping[str, Any]) -> None:
    found = read_json(path)
    check_format(found, path, kind="training", newest=1)
    if found.get("dataset") != plan["dataset"]:
        raise UsageError("--resume: the unfinished run was on another dataset")
    if found.get("folds") != plan["folds"]:
        raise UsageError(f"--resume: the unfinished run has folds {found.get('folds')}, got {plan['folds']}")
    config = found.get("config")
    old: Mapping[str, Any] = config if isinstance(config, dict) else {}
    changed = [key for key, value in plan["config"].items() if old.get(key) != value]
    if changed:
        raise UsageError(f"--resume: the unfinished run was made with another setting of {', '.join(changed)}")
    refuse_other_versions(found.get("versions") or {})


def _everywhere(take: Any) -> IO[bytes] | None:
    """Let the main process act; when it refuses, all processes stop."""
    state = processes()
    refusal: OscarError | None = None
    lock: IO[bytes] | None = None
    if state.is_main_process:
        try:
            lock = take()
        except OscarError as error:
            refusal = error
    if state.num_processes > 1:
        flag = torch.tensor([float(refusal is not None)], device=state.device)
        torch.distributed.broadcast(flag, 0)
        if refusal is None and bool(flag.item()):
            raise UsageError("training: the main process refused; see its message")
    if refusal is not None:
        raise refusal
    return lock
