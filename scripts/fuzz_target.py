"""One reader that is fuzzed: valid seeds, and a function that reads damaged bytes.

A reader may take the input or refuse it with an OscarError of one line. Anything else is a finding.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutations import Rng, mutate_bytes, mutate_json, mutate_table

from oscar_causal.data.checksums import NAME as CHECKSUMS
from oscar_causal.errors import OscarError

Read = Callable[[Path], Any]


@dataclass(frozen=True)
class Target:
    """One reader."""

    name: str
    seeds: Sequence[bytes]
    read: Callable[[bytes], Any]
    share: int
    """How many of 100 inputs of the campaign are for this reader."""
    kind: str = "bytes"
    """json and parquet: half of the inputs are changed as values, not as bytes."""
    quick: Callable[[bytes], Any] | None = None
    """Reads the damaged file alone, where `read` goes on to use it: for many inputs in little time."""

    def make(self, rng: Rng) -> bytes:
        """One input."""
        seed = self.seeds[int(rng.integers(len(self.seeds)))]
        if self.kind == "json" and rng.random() < 0.6:
            return mutate_json(seed, rng)
        if self.kind == "parquet" and rng.random() < 0.5:
            return mutate_table(seed, rng)
        return mutate_bytes(seed, rng, self.seeds)

    def finding(self, data: bytes, *, quick: bool = False) -> str | None:
        """What is wrong with how this input is read; None when it is taken, or refused in one line."""
        try:
            (self.quick if quick and self.quick else self.read)(data)
        except OscarError as error:
            return "more than one line: " + repr(error) if "\n" in str(error) or not str(error) else None
        except Exception as error:  # noqa: BLE001 - this is what we look for
            return f"{type(error).__name__}: {error}"[:500]
        return None


def file_target(folder: Path, name: str, seed: bytes, read: Callable[[Path], Any], share: int) -> Target:
    path = folder / name

    def read_bytes(data: bytes) -> None:
        path.write_bytes(data)
        read(path)

    return Target(name, [seed], read_bytes, share, "json")


def inside(  # noqa: PLR0913
    folder: Path, whole: Path, name: str, kind: str, share: int, read: Read, quick: Read | None = None
) -> Target:
    """One file of a folder is damaged, the others are whole; readers must hold where there are no checksums."""
    place = folder / f"{whole.name}-{name.replace('/', '-')}"
    shutil.copytree(whole, place)
    if name != CHECKSUMS:
        forget_checksums(place)

    def read_bytes(data: bytes) -> None:
        (place / name).write_bytes(data)
        read(place)

    def quick_bytes(data: bytes) -> None:
        (place / name).write_bytes(data)
        (quick or read)(place)

    return Target(f"{whole.name}/{name}", [(whole / name).read_bytes()], read_bytes, share, kind, quick_bytes)


def forget_checksums(folder: Path) -> None:
    """As earlier versions wrote it: with checksums at hand, no damaged file would be read at all."""
    for path in folder.rglob(CHECKSUMS):
        path.unlink()


def importer(
    folder: Path, name: str, seeds: Sequence[bytes], share: int, kind: str = "bytes", **options: Any
) -> Target:
    """`oscar import` of one file; what it makes must be readable, and nothing else may be left."""
    from oscar_causal.data.importers import ImportOptions, import_tables
    from oscar_causal.data.importers.formats import open_source

    place = folder / f"import-{name}"
    place.mkdir()

    def read(data: bytes) -> None:
        (place / name).write_bytes(data)
        given = ImportOptions(**options, skip_bad_rows=len(data) % 2 == 0)
        try:
            import_tables([place / name], place / "out", given, force=True)
            use_dataset(place / "out")
        finally:
            left = [path.name for path in place.iterdir() if path.name not in (name, "out")]
            shutil.rmtree(place / "out", ignore_errors=True)
        if left:
            raise AssertionError(f"left behind: {left}")

    def quick(data: bytes) -> None:
        (place / name).write_bytes(data)
        for table in open_source([place / name], ImportOptions(**options)).tables:
            for _ in table.batches(table.header):
                pass

    return Target(f"import {name}", seeds, read, share, kind, quick)


def use_dataset(path: Path) -> None:
    from oscar_causal.data.inspect import inspect_dataset
    from oscar_causal.data.rows import SequenceRows
    from oscar_causal.data.sequences import read_dataset

    data = read_dataset(path)
    _ = data.times, data.static(), data.label_times(), [data.channel(name) for name in data.channels]
    SequenceRows(path).take([0])
    inspect_dataset(path)
