"""Model folders and training checkpoints: safetensors and JSON only, complete or not there."""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from oscar_causal.data.checksums import NAME as CHECKSUMS
from oscar_causal.data.checksums import check_file, checksums, sha256
from oscar_causal.data.folders import check_format, flush, read_json, write_json
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.labels import Calibration
from oscar_causal.density.model import OscarModel
from oscar_causal.density.transformer import Network, NetworkConfig
from oscar_causal.errors import DataError, FolderError, UsageError

FORMAT_VERSION = 1
LARGEST_SIZE = 2**27
"""No honest network is wider, deeper or richer in events than this; a damaged number must not fill the memory."""


MOST_LAYERS = 1000
"""Each takes a moment to build, before the weights can be compared."""


def save_model(model: OscarModel, folder: Path) -> None:
    """Write config, weights and vocabulary into an existing folder."""
    config = {
        "kind": "model",
        "format_version": FORMAT_VERSION,
        "network": asdict(model.network.config),
        "channels": list(model.channels),
        "max_length": model.max_length,
        "min_context": model.min_context,
    }
    save_tensors(folder / "model.safetensors", model.network.state_dict())
    write_json(folder / "vocabulary.json", model.vocabulary.to_json())
    write_json(folder / "config.json", config)


def load_model(folder: Path | str, *, device: str | torch.device = "cpu") -> OscarModel:
    """Open a model folder; anything damaged, foreign or newer is one clear line."""
    folder = Path(folder)
    _refuse_other(folder)
    network_config, channels, max_length, min_context = read_config(folder / "config.json")
    try:
        vocabulary = Vocabulary.from_json(read_json(folder / "vocabulary.json"))
    except DataError as error:
        raise FolderError(f"{folder / 'vocabulary.json'}: {error}") from error
    if (vocabulary.size, len(vocabulary.labels)) != (network_config.events, network_config.labels):
        raise FolderError(f"{folder}: damaged model: vocabulary.json and config.json differ in size")
    quality = read_quality(folder, labels=len(vocabulary.labels))
    with torch.device("meta"), _Uninitialised():  # shapes only: compared with the weights before memory is taken
        network = Network(network_config)
    load_weights(network, folder / "model.safetensors")
    network.to(device).eval().requires_grad_(False)
    return OscarModel(
        network,
        vocabulary,
        channels,
        max_length,
        min_context,
        calibration=_calibration(quality),
        info={"quality": quality},
    )


class _Uninitialised(TorchFunctionMode):
    """Inside, weights get no first values. Where there is only a shape, torch would import its compiler for them, and
    that takes longer than all the rest of loading.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == nn.init.__name__:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def _refuse_other(path: Path) -> None:
    """A folder of another kind was meant for something else."""
    if (path / "config.json").exists():
        return
    others = {"dataset.json": "a dataset", "run.json": "results", "population.json": "a population"}
    kind = next((kind for name, kind in others.items() if (path / name).exists()), "neither")
    raise FolderError(f"{path}: expected a model folder (with config.json or folds.json), found {kind}")


def read_config(path: Path) -> tuple[NetworkConfig, tuple[str, ...], int, int]:
    """Network, channels, longest length and c of a model's `config.json`."""
    config = read_json(path)
    check_format(config, path, kind="model", newest=FORMAT_VERSION)
    sizes, channels = config.get("network"), config.get("channels")
    try:
        if not isinstance(sizes, dict) or not isinstance(channels, list) or len(channels) != sizes["channels"]:
            raise ValueError("expected 'network' with sizes and 'channels' with names")
        wrong = [name for name, value in sizes.items() if name != "label_form" and type(value) is not int]
        if wrong or not all(0 <= value <= LARGEST_SIZE for name, value in sizes.items() if name != "label_form"):
            raise ValueError(f"network: expected whole numbers up to {LARGEST_SIZE}, got {wrong or 'another one'}")
        if max(sizes.get(name, 1) for name in ("layers", "label_layers")) > MOST_LAYERS:
            raise ValueError(f"network: expected at most {MOST_LAYERS} layers")
        limits = tuple(config[name] for name in ("max_length", "min_context"))
        if any(type(limit) is not int or not 0 <= limit <= LARGEST_SIZE for limit in limits) or limits[0] < 1:
            raise ValueError(f"expected whole numbers 'max_length' (1 or more) and 'min_context', got {limits}")
        return NetworkConfig(**sizes), tuple(map(str, channels)), *limits
    except KeyError as error:
        raise FolderError(f"{path}: damaged model: expected {error}, got nothing") from error
    except (TypeError, ValueError, UsageError) as error:
        raise FolderError(f"{path}: damaged model: {error}") from error


def read_quality(folder: Path, *, labels: int) -> dict[str, Any]:
    """Read `quality.json`, its shape checked for a model of so many labels."""
    path = folder / "quality.json"
    quality = read_json(path)
    check_format(quality, path, kind="quality", newest=FORMAT_VERSION)
    rows, stored = quality.get("per_label"), quality.get("calibration")
    if not isinstance(rows, dict) or not all(isinstance(row, dict) and "trusted" in row for row in rows.values()):
        raise FolderError(f"{path}: damaged model: expected 'per_label' with one row per label")
    if stored is not None:
        parts = [stored.get(name) for name in ("slope", "shift")] if isinstance(stored, dict) else []
        if len(parts) != 2 or not all(_is_numbers(part, labels) for part in parts):
            raise FolderError(f"{path}: damaged model: expected 'calibration' with {labels} slopes and shifts")
    return quality


def _is_numbers(value: Any, count: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == count
        and all(type(item) in (int, float) and abs(item) < 1e30 for item in value)
    )


def model_digest(folder: Path | str) -> str:
    """A hash of everything in a model folder that decides its answers."""
    total = hashlib.sha256()
    for name in ("config.json", "vocabulary.json", "quality.json", "folds.json", "model.safetensors"):
        for path in sorted(Path(folder).rglob(name)):
            total.update(str(path.relative_to(folder)).encode())
            total.update(bytes.fromhex(sha256(path)))
    return total.hexdigest()


def load_weights(network: Network, path: Path) -> None:
    """Fill a network from a safetensors file whose names and shapes must match."""
    tensors = load_tensors(path)
    wanted = network.state_dict()
    for name, tensor in wanted.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            came = tuple(tensors[name].shape) if name in tensors else "nothing"
            raise FolderError(f"{path}: weight {name!r}: expected shape {tuple(tensor.shape)}, got {came}")
    types = tensors["shortlist.types"] if "shortlist.types" in wanted else torch.zeros(1, dtype=torch.int64)
    if types.dtype != torch.int64 or ((types < 0) | (types > network.config.events)).any():
        raise FolderError(f"{path}: shortlist.types: expected event ids up to {network.config.events}")
    windows = tensors["shortlist.windows"] if "shortlist.windows" in wanted else torch.ones(1)
    if not (windows.isfinite() & (windows > 0)).all():
        raise FolderError(f"{path}: shortlist.windows: expected seconds above 0")
    network.load_state_dict({name: tensors[name].to(tensor.dtype) for name, tensor in wanted.items()}, assign=True)


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors atomically, readable to whom the umask allows (safetensors would write for the owner alone)."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.touch()
        mode = stat.S_IMODE(partial.stat().st_mode)
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, partial)
        partial.chmod(mode)
        flush(partial)
        partial.replace(path)
    except (OSError, SafetensorError) as error:  # a full disk is a SafetensorError
        partial.unlink(missing_ok=True)
        raise FolderError(f"{path}: cannot be written: {error}") from error


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors; a missing or damaged file is a FolderError."""
    check_file(path)
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise FolderError(f"{path}: missing or damaged weights: {error}") from error


def save_checkpoint(folder: Path, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write `checkpoint-<step>` beside the older one, then remove the older one."""
    target = folder / f"checkpoint-{step:09d}"
    partial = folder / f"{target.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    save_tensors(partial / "state.safetensors", tensors)
    write_json(partial / "state.json", {"kind": "checkpoint", "format_version": FORMAT_VERSION, **state})
    write_json(partial / CHECKSUMS, checksums(partial))
    if not target.exists():
        partial.rename(target)
    for old in _checkpoints(folder):
        if old != target:
            shutil.rmtree(old, ignore_errors=True)


class CheckpointWriter:
    """Writes checkpoints while training goes on, one at a time; at the end of the block the last one is written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._pool = folder, ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def save(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Take a copy of everything, to be written as `save_checkpoint` does; the one before must be written by now."""
        self.check(wait=True)
        taken = {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
        self._last = self._pool.submit(save_checkpoint, self.folder, step, taken, deepcopy(state))

    def check(self, *, wait: bool = False) -> None:
        """Raise what went wrong with the last one, as far as that is known yet."""
        if self._last is not None and (wait or self._last.done()):
            self._last.result()

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(wait=True)
        if kind is None:
            self.check()


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The newest complete checkpoint of a training folder, or None."""
    found = _checkpoints(folder)
    if not found:
        return None
    state = read_json(found[-1] / "state.json")
    check_format(state, found[-1] / "state.json", kind="checkpoint", newest=FORMAT_VERSION)
    return load_tensors(found[-1] / "state.safetensors"), state


def checkpoint_pieces(folder: Path) -> dict[str, Any] | None:
    """How the newest checkpoint's run cuts its steps; None = there is none, or it is older than such plans."""
    found = _checkpoints(folder)
    pieces = read_json(found[-1] / "state.json").get("pieces") if found else None
    return pieces if isinstance(pieces, dict) else None


def has_checkpoint(folder: Path) -> bool:
    """Is there one to go on from?"""
    return bool(_checkpoints(folder))


def remove_checkpoints(folder: Path) -> None:
    """Remove every checkpoint, also unfinished ones."""
    for path in folder.glob("checkpoint-*"):
        shutil.rmtree(path, ignore_errors=True)


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("checkpoint-*") if re.fullmatch(r"checkpoint-\d{9}", path.name))


def _calibration(quality: Mapping[str, Any]) -> Calibration | None:
    stored = quality.get("calibration")
    if not stored:
        return None
    return Calibration(tuple(stored["slope"]), tuple(stored["shift"]))
