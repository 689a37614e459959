"""A dataset folder in, a results folder out: what `oscar baseline` does, resumable by label.

Finished labels are lines of `boundaries.jsonl` in the unfinished folder; they stay in the results as the global
boundaries beside the readings per sequence.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from oscar_causal import __version__
from oscar_causal.data.checksums import check_file
from oscar_causal.data.digest import check_digest
from oscar_causal.data.folders import parse_json
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.stream import describe_dataset
from oscar_causal.discovery.classical.boundaries import GlobalBoundary
from oscar_causal.discovery.classical.learning import label_ids, learn_boundaries
from oscar_causal.discovery.classical.methods import ESTIMAND, BaselineConfig
from oscar_causal.discovery.classical.reading import read_per_sequence
from oscar_causal.discovery.results import ResultsWriter, fingerprint
from oscar_causal.errors import FolderError

PAIRS_PER_SHARD = 10_000
OnProgress = Callable[[int, int], None]


def baseline_folder(
    dataset: Path | str,
    out: Path | str,
    config: BaselineConfig | None = None,
    *,
    labels: Sequence[str] | None = None,
    workers: int = 1,
    resume: bool = False,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> list[GlobalBoundary]:
    """Learn the boundaries of the labels (default: all) and write them, read per sequence, as a results folder."""
    config = config or BaselineConfig()
    check_digest(dataset)
    data = read_dataset(dataset)
    names = [data.label_names[label] for label in label_ids(data, labels)]
    begun = time.time()
    writer = ResultsWriter(out, describe_run(dataset, config, names), resume=resume, force=force)
    log = writer.partial / "boundaries.jsonl"
    try:
        known = {found.label: found for found in read_boundaries(log)} if log.exists() else {}
        found = _learn_missing(data, config, names, known, log, workers, on_progress)
        _write(writer, found, data, config)
        incomplete = sum(not item.complete for item in found)
        times = {"seconds": time.time() - begun, "host": platform.node(), "workers": workers}
        writer.finish(**times, incomplete_labels=incomplete)
    except BaseException:
        if log.exists() and log.stat().st_size:
            writer.lock.close()  # the finished labels stay for --resume
        else:
            writer.discard()
        raise
    return found


def describe_run(dataset: Path | str, config: BaselineConfig, labels: Sequence[str]) -> dict[str, Any]:
    """What decides the results, with its fingerprint; the content of `run.json` but for times and hosts."""
    described = describe_dataset(dataset)
    what = {
        "estimator": config.method,
        "estimand": ESTIMAND[config.method],
        "config": config.to_json(),
        "labels": list(labels),
        "dataset": described,
        "versions": {"oscar": __version__},
    }
    decides = {
        "config": {**config.to_json(), "time_limit": None},  # a resumed run may be given more time
        "labels": list(labels),
        "dataset": [described["digest"], described["sequences_sha256"]],
        "versions": what["versions"],
    }
    return {**what, "fingerprint": fingerprint(decides)}


def read_boundaries(path: Path | str) -> list[GlobalBoundary]:
    """The global boundaries of a results folder (`boundaries.jsonl`); a last line cut short by a crash is left out."""
    check_file(Path(path))
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
        return [GlobalBoundary.from_json(parse_json(line)) for line in lines[:-1]]
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path}: expected one JSON object a line, cannot read it: {error}") from error


def _learn_missing(
    data: Dataset,
    config: BaselineConfig,
    names: list[str],
    known: dict[str, GlobalBoundary],
    log: Path,
    workers: int,
    on_progress: OnProgress | None,
) -> list[GlobalBoundary]:
    """Labels not in the log are learnt and logged, one line each as soon as it is finished."""
    log.write_text("".join(_line(item) for item in known.values()), encoding="utf-8")
    with log.open("a", encoding="utf-8") as lines:

        def keep(found: GlobalBoundary) -> None:
            known[found.label] = found
            lines.write(_line(found))
            lines.flush()
            if on_progress is not None:
                on_progress(len(known), len(names))

        missing = [name for name in names if name not in known]
        if missing:
            learn_boundaries(data, config, labels=missing, workers=workers, on_boundary=keep)
    ordered = [known[name] for name in names]  # the order of the labels, not of the clock
    log.write_text("".join(_line(item) for item in ordered), encoding="utf-8")
    return ordered


def _line(found: GlobalBoundary) -> str:
    return json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False) + "\n"


def _write(writer: ResultsWriter, found: list[GlobalBoundary], data: Dataset, config: BaselineConfig) -> None:
    pairs = read_per_sequence(found, data, statistic=config.tests.statistic)
    for shard, begin in enumerate(range(0, max(len(pairs), 1), PAIRS_PER_SHARD)):
        writer.write_shard(shard, pairs[begin : begin + PAIRS_PER_SHARD])
