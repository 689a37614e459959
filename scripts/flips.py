"""Flip single bits in the files of a dataset, model, results and population, and ask all that read them: `make flips`.

A verb must refuse in one line, or give the answer it gives with the sound folder; where a file that people edit is
changed it may answer with a note. Writes docs/results/flips.md and flips.json; the exit code is 1 when a verb answered
something else without a word, ended with a stack trace, or did not end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from program import commit

BAD = ("silently different", "stack trace", "no end")
OUTCOMES = (*BAD, "refused", "note", "identical")
"""Of a verb, and of a flip: the first of these that one of its verbs ended with."""
SECONDS = 120
"""A verb that takes longer does not end."""

MAKE = (
    "synth --out fleet --sequences 120 --labels 3 --event-types 24 --length 10 --workers 1",
    "select fleet --last 32 --out few",
    "train fleet --steps {steps} --batch-tokens 512 --max-length 32 --min-context 2 --workers 1 --out model",
    "train fleet --steps 2 --batch-tokens 512 --max-length 32 --min-context 2 --workers 1 --folds 2 --out folds",
    "discover model few --contexts 16 --out results",
    "baseline iamb few --features order --workers 1 --out classical",
    "population results --classical classical --looks 1 --contexts 36 --window 30 --out population",
)
READ_DATASET = (
    "inspect few --json",
    "export few --out out/tables --json",
    "select few --last 9 --out out/part --json",
    "train few --steps 1 --batch-tokens 256 --max-length 32 --min-context 2 --workers 1 --out out/model --json",
    "baseline iamb few --workers 1 --out out/found --json",
)
ASK_MODEL = ("check {model} few --json", "explain {model} {sequence} --dataset few --contexts 16 --json")
READ_RESULTS = (
    "score results --json",
    "report results --out out/page.html --json",
    "explain-run results",
    "population results --looks 0 --no-rules --out out/population --json",
)
DISCOVER = "discover model few --contexts 16 --out out/found --json"
VERBS: dict[str, tuple[str, ...]] = {
    "few": (*READ_DATASET, *ASK_MODEL, DISCOVER, *READ_RESULTS),
    "model": (*ASK_MODEL, DISCOVER, *READ_RESULTS),
    "folds": tuple(line.replace("{model}", "folds") for line in ASK_MODEL),
    "results": (*READ_RESULTS, "graph results --out out/graph.json --json"),
    "classical": (
        "score classical --json",
        "population results --classical classical --looks 0 --no-rules --out out/population --json",
    ),
    "population": (
        "graph population --population --out out/graph.json --json",
        "report results --population population --out out/page.html --json",
        "explain model {sequence} --dataset few --population population --contexts 36 --json",
        "population population --window 30 --out out/merged --json",
    ),
}
"""Folder -> the verbs that read it."""
PASSING = ("seconds", "host", "tokens_per_s", "memory", "device")
"""Keys of JSON that differ from run to run."""


@dataclass(frozen=True)
class Flip:
    """One bit; `share` of the file lies before its byte."""

    file: str
    share: float
    bit: int


@dataclass(frozen=True)
class Answer:
    """How a verb ended: exit code (None = it did not), what it said, a hash of what it printed and wrote."""

    code: int | None
    said: str
    content: str


def ask(world: Path, line: str) -> Answer:
    """Run a verb in a copy of this process, with `world` as its folder."""
    out = world / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    printed, said = world / "stdout", world / "stderr"
    child = os.fork()
    if child == 0:
        _act(world, line, printed, said)
    code = _wait(child)
    return Answer(code, said.read_text("utf-8", "replace"), _hash([printed, *_files(out)], world))


def _act(world: Path, line: str, printed: Path, said: Path) -> None:
    """The child: never returns."""
    from oscar_causal.cli import main

    code: Any = 1
    try:
        os.chdir(world)
        for descriptor, path in ((1, printed), (2, said)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        sys.argv = ["oscar", *line.split()]
        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:  # noqa: BLE001 - as the interpreter itself would
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int) -> int | None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _files(folder: Path) -> list[Path]:
    """All files; checksums depend on times too."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "checksums.json")


def _hash(paths: Sequence[Path], world: Path) -> str:
    total = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        if path.suffix == ".jsonl":
            content = b"\n".join(map(_without_times, content.splitlines()))
        elif path.suffix == ".json" or content[:1] in b"{[":
            content = _without_times(content)
        total.update(str(path.relative_to(world)).encode() + hashlib.sha256(content).digest())
    return total.hexdigest()


def _without_times(content: bytes) -> bytes:
    try:
        value = json.loads(content)
    except ValueError:
        return content
    return json.dumps(_kept(value)).encode()


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _kept(item) for key, item in value.items() if key not in PASSING}
    return [_kept(item) for item in value] if isinstance(value, list) else value


def make_world(world: Path, *, steps: int = 40) -> None:
    """The folders, each by the verb that makes it."""
    world.mkdir(parents=True)
    for line in MAKE:
        made = ask(world, line.format(steps=steps))
        if made.code != 0:
            raise RuntimeError(f"{line}: {made.said}")


def expected_answers(world: Path, verbs: dict[str, tuple[str, ...]]) -> dict[str, Answer]:
    """Line -> the answer with sound folders; one that is not always the same is an error."""
    found = {}
    for line in sorted({line for lines in verbs.values() for line in lines}):
        first, second = ask(world, line), ask(world, line)
        if first.code != 0 or first.content != second.content or "checksums" in first.said:
            raise RuntimeError(f"{line}: no constant answer: {first.said}")
        found[line] = first
    return found


def lines_for(world: Path) -> dict[str, tuple[str, ...]]:
    """The verbs with the names that they need filled in."""
    import pyarrow.parquet as pq

    verdicts = pq.read_table(world / "results" / "verdicts" / "part-00000.parquet", use_threads=False)
    names = {"model": "model", "sequence": verdicts["sequence_id"][0].as_py()}
    return {folder: tuple(line.format(**names) for line in lines) for folder, lines in VERBS.items()}


def plan(world: Path, folders: Sequence[str], count: int, seed: int) -> list[Flip]:
    """So many flips: every kind of file gets as many as the others, spread over its bytes, ends included."""
    rng = np.random.default_rng(seed)
    kinds: dict[str, list[str]] = {}
    for folder in folders:
        for path in sorted(path for path in (world / folder).rglob("*") if path.is_file()):
            name = path.relative_to(world).as_posix()
            kinds.setdefault(kind_of(name), []).append(name)
    flips = []
    for index, (kind, names) in enumerate(kinds.items()):
        mine = count // len(kinds) + (index < count % len(kinds))
        for place, share in enumerate(_spread(mine, rng, ends=kind.endswith((".parquet", ".safetensors")))):
            flips.append(Flip(names[place % len(names)], share, int(rng.integers(8))))
    return flips


def kind_of(name: str) -> str:
    """Parts of a table, and folds, are of one kind.

    >>> kind_of("folds/fold-1/config.json"), kind_of("results/causes/part-00003.parquet")
    ('folds/fold-*/config.json', 'results/causes/part-*.parquet')
    """
    return re.sub(r"(part|fold)-\d+", r"\1-*", name)


def _spread(count: int, rng: np.random.Generator, *, ends: bool) -> list[float]:
    """Shares of a file, one in each of `count` equal pieces; with `ends` two of them are its first and last bytes."""
    shares = ((np.arange(count) + rng.random(count)) / max(count, 1)).tolist()
    if ends and count > 2:
        shares[0], shares[-1] = 0.0, 1.0
    return list(shares)


def flip_bit(path: Path, flip: Flip) -> bytes:
    """Change the file and return what it was; a new file, so that no time stamp hides the change."""
    before = path.read_bytes()
    content = bytearray(before)
    content[min(int(flip.share * len(content)), len(content) - 1)] ^= 1 << flip.bit
    path.unlink()
    path.write_bytes(content)
    return before


def try_flip(world: Path, flip: Flip, lines: Sequence[str], sound: dict[str, Answer]) -> dict[str, Any]:
    """Ask every verb about the changed folder; the file is put back."""
    path = world / flip.file
    before = flip_bit(path, flip)
    try:
        ended = {line: outcome(ask(world, line), sound[line], path.name) for line in lines}
    finally:
        path.write_bytes(before)
    worst = min(ended.values(), key=OUTCOMES.index)
    bad = [line for line, how in ended.items() if how in BAD]
    return {"file": flip.file, "share": round(flip.share, 6), "bit": flip.bit, "outcome": worst, "verbs": bad}


def outcome(answer: Answer, sound: Answer, name: str) -> str:
    """One of OUTCOMES."""
    lines = answer.said.splitlines()
    if answer.code is None:
        return "no end"
    if answer.code:
        one_line = bool(lines) and lines[-1].startswith("oscar: ") and "Traceback" not in answer.said
        return "refused" if one_line and answer.code > 1 else "stack trace"
    if answer.content == sound.content:
        return "identical"
    return "note" if any(name in line and "edited since" in line for line in lines) else "silently different"


def campaign(world: Path, folders: Sequence[str], count: int, seed: int, part: slice) -> list[dict[str, Any]]:
    """Some of the flips, on a world of its own."""
    make_world(world)
    lines = lines_for(world)
    sound = expected_answers(world, {folder: lines[folder] for folder in folders})
    flips = plan(world, folders, count, seed)[part]
    return [try_flip(world, flip, lines[flip.file.split("/")[0]], sound) for flip in flips]


def import_all() -> None:
    """What the verbs import, once and before any copy; nothing is computed here, so copies are sound."""
    for name in ("accelerate", "rich.table", "rich.console", "rich.progress", "networkx"):
        import_module(name)
    for name in ("data.select", "data.inspect", "data.export", "density.fitting", "density.checking", "discovery.local",
                 "discovery.classical.folder", "graph.assembling", "report.page_data", "score.scoring"):  # fmt: skip
        import_module(f"oscar_causal.{name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--flips", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--commit", help="Of the program, for the record; by default the one checked out here.")
    given = parser.parse_args()
    begun, program = time.time(), commit(given.commit)
    import_all()
    with tempfile.TemporaryDirectory() as name:
        rows = list(_all_campaigns(Path(name), given))
    _write(given.out, rows, seed=given.seed, seconds=time.time() - begun, commit=program)
    for row in rows:
        if row["outcome"] in BAD:
            print(f"{row['outcome']}: {row['file']} at {row['share']} bit {row['bit']}: {row['verbs']}", flush=True)
    return int(any(row["outcome"] in BAD for row in rows))


def _all_campaigns(folder: Path, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with ProcessPoolExecutor(given.workers, mp_context=get_context("fork")) as pool:
        parts = [
            pool.submit(
                campaign, folder / f"world-{k}", tuple(VERBS), given.flips, given.seed, slice(k, None, given.workers)
            )
            for k in range(given.workers)
        ]
        for part in parts:
            yield from part.result()


def _write(out: Path, rows: list[dict[str, Any]], **facts: Any) -> None:
    facts |= {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}
    table: dict[str, Counter[str]] = {}
    for row in sorted(rows, key=lambda row: str(row["file"])):
        table.setdefault(kind_of(row["file"]), Counter())[row["outcome"]] += 1
    total = sum(table.values(), Counter())
    lines = [
        "# Flipped bits",
        "",
        "`make flips`: one bit is flipped in a sound folder, and every verb that reads the folder is asked.",
        "*Refused*: a verb ended with one line, all others as below. *Note*: a verb used a file that people edit and",
        "said so. *Identical*: every verb gave the answer it gives with the sound folder.",
        "",
        f"| file | flips | {' | '.join(reversed(OUTCOMES))} |",
        f"|---|{'---|' * (len(OUTCOMES) + 1)}",
    ]
    for name, counts in [*table.items(), ("all", total)]:
        figures = " | ".join(str(counts[outcome]) for outcome in reversed(OUTCOMES))
        lines.append(f"| {name} | {counts.total()} | {figures} |")
    told = f"Seed {facts['seed']}, {facts['machine']}, {facts['seconds']:.0f} s, commit {facts['commit']}."
    lines += ["", f"{told} Every flip: `flips.json`.", ""]
    out.mkdir(parents=True, exist_ok=True)
    (out / "flips.md").write_text("\n".join(lines))
    (out / "flips.json").write_text(json.dumps({**facts, "flips": rows}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
