"""Model folders and training checkpoints: safetensors and JSON only, complete or not there."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from oscar_causal.data.folders import check_format, read_json, write_json
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.density.labels import Calibration
from oscar_causal.density.model import OscarModel
from oscar_causal.density.transformer import Network, NetworkConfig
from oscar_causal.errors import FolderError, OscarError

FORMAT_VERSION = 1


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
    config = read_json(folder / "config.json")
    check_format(config, folder / "config.json", kind="model", newest=FORMAT_VERSION)
    try:
        network = Network(NetworkConfig(**config["network"]))
        vocabulary = Vocabulary.from_json(read_json(folder / "vocabulary.json"))
        limits = (tuple(config["channels"]), int(config["max_length"]), int(config["min_context"]))
    except FolderError:
        raise
    except (KeyError, TypeError, ValueError, OscarError) as error:
        raise FolderError(f"{folder}: damaged model: {error}") from error
    if vocabulary.size != network.config.events or len(vocabulary.labels) != network.config.labels:
        raise FolderError(f"{folder}: damaged model: vocabulary and weights differ in size")
    load_weights(network, folder / "model.safetensors")
    quality = read_json(folder / "quality.json") if (folder / "quality.json").exists() else {}
    network.to(device).eval().requires_grad_(False)
    return OscarModel(network, vocabulary, *limits, calibration=_calibration(quality), info={"quality": quality})


def model_digest(folder: Path | str) -> str:
    """A hash of everything in a model folder that decides its answers."""
    total = hashlib.sha256()
    for name in ("config.json", "vocabulary.json", "quality.json", "folds.json", "model.safetensors"):
        for path in sorted(Path(folder).rglob(name)):
            total.update(str(path.relative_to(folder)).encode())
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def load_weights(network: Network, path: Path) -> None:
    """Fill a network from a safetensors file whose names and shapes must match."""
    tensors = load_tensors(path)
    wanted = network.state_dict()
    for name, tensor in wanted.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            came = tuple(tensors[name].shape) if name in tensors else "nothing"
            raise FolderError(f"{path}: weight {name!r}: expected shape {tuple(tensor.shape)}, got {came}")
    network.load_state_dict({name: tensors[name] for name in wanted})


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors atomically."""
    partial = path.with_name(path.name + ".partial")
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, partial)
    partial.replace(path)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors; a missing or damaged file is a FolderError."""
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
    if not target.exists():
        partial.rename(target)
    for old in _checkpoints(folder):
        if old != target:
            shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The newest complete checkpoint of a training folder, or None."""
    found = _checkpoints(folder)
    if not found:
        return None
    state = read_json(found[-1] / "state.json")
    check_format(state, found[-1] / "state.json", kind="checkpoint", newest=FORMAT_VERSION)
    return load_tensors(found[-1] / "state.safetensors"), state


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
