"""Subjects (cars, patients) are never cut by a split: which part one belongs to is a hash of its name."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def subject_hashes(subject_ids: pa.Array, *, seed: int = 0) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each subject's name, the same on every machine."""
    prefix = f"{seed}:".encode()
    encoded = subject_ids.dictionary_encode()
    digests = [
        int.from_bytes(hashlib.blake2b(prefix + name.encode(), digest_size=8).digest(), "little")
        for name in encoded.dictionary.to_pylist()
    ]
    hashes: npt.NDArray[np.uint64] = np.array(digests, np.uint64)[encoded.indices.to_numpy(zero_copy_only=False)]
    return hashes


def held_out(subject_ids: pa.Array, share: float, *, seed: int) -> npt.NDArray[np.bool_]:
    """Mark the sequences of about `share` of the subjects.

    >>> import pyarrow as pa
    >>> marks = held_out(pa.array(["a", "b", "a"]), 0.5, seed=1)
    >>> bool(marks[0] == marks[2])
    True
    """
    return subject_hashes(subject_ids, seed=seed) < np.uint64(min(int(share * 2.0**64), 2**64 - 1))


def folds(subject_ids: pa.Array, count: int, *, seed: int) -> npt.NDArray[np.int64]:
    """The fold of each sequence: hash(subject, seed) mod count."""
    return (subject_hashes(subject_ids, seed=seed) % np.uint64(count)).astype(np.int64)


def pack_subjects(subject_ids: pa.Array) -> str:
    """The set of subjects as text for a JSON file: sorted 64-bit hashes, base64."""
    return _packed(subject_hashes(subject_ids))


def _packed(hashes: npt.NDArray[np.uint64]) -> str:
    return base64.b64encode(np.unique(hashes).astype("<u8").tobytes()).decode()


def join_subjects(packed: Iterable[str | None]) -> str | None:
    """The union of packed sets; None, not known, where one of them is."""
    texts = list(dict.fromkeys(packed))
    if len(texts) == 1 or None in texts:
        return texts[0] if len(texts) == 1 else None
    return _packed(np.concatenate([_unpacked(text) for text in texts if text is not None]))


def seen_subjects(subject_ids: pa.Array, packed: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Mark the sequences whose subject is in one of the packed sets; 64-bit hashes make false alarms very rare."""
    asked = subject_hashes(subject_ids)
    seen = np.zeros(len(asked), bool)
    for text in packed:
        known = _unpacked(text)
        if len(known):
            seen |= known[np.minimum(np.searchsorted(known, asked), len(known) - 1)] == asked
    return seen


@lru_cache(maxsize=16)  # each sequence of a run asks
def _unpacked(text: str) -> npt.NDArray[np.uint64]:
    return np.unique(np.frombuffer(base64.b64decode(text), "<u8")).astype(np.uint64)
