"""Break runs on purpose and see that nothing is lost, nothing doubled and nothing half: `make faults`.

Each fault happens to real processes: `kill -9` of train and discover at random moments, of a worker process, of a Ray
worker and a Ray node, a disk that is full, Ctrl-C and SIGTERM, two runs with one process id into one folder. Afterwards
the run is resumed and must end with the files of an undisturbed run. Writes docs/results/faults.md and faults.json; the
exit code is 1 when anything differed.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from program import commit

SEQUENCES, SHARD = 96, 8
"""A small fleet in many shards, so that a kill falls between two as well as inside one."""
PASSING = ("run.json", "checksums.json")
"""Files with times and hosts, and with hashes of such files."""


@dataclass(frozen=True)
class World:
    """What the runs work on."""

    folder: Path

    @property
    def fleet(self) -> Path:
        return self.folder / "fleet"

    @property
    def model(self) -> Path:
        return self.folder / "model"


def make_world(folder: Path) -> World:
    """A fleet of an exactly solvable process and a model trained on it for a moment."""
    from oscar_causal.data.sequences import read_dataset
    from oscar_causal.data.writer import write_dataset
    from oscar_causal.density.fitting import train

    world = World(folder)
    write_dataset(world.fleet, [_draw(SEQUENCES)])
    train(read_dataset(world.fleet), world.model, _train_config(steps=6, checkpoint_seconds=60.0))
    return world


def _draw(count: int) -> Any:
    import pyarrow as pa

    from oscar_causal.data.solvable import example

    process, rng = example("graded"), np.random.default_rng(1)
    drawn = process.sample(count, rng)
    return pa.Table.from_pylist(
        [
            {
                "sequence_id": f"sequence {i}",
                "events": [process.event_names[t] for t in drawn.event_ids[i]],
                "times": drawn.times[i].tolist(),
                "labels": [process.label_names[j] for j in np.flatnonzero(drawn.labels[i])],
            }
            for i in range(count)
        ]
    )


def _train_config(**changes: Any) -> Any:
    from oscar_causal.density.settings import TrainConfig

    sizes = {"batch_tokens": 256, "min_context": 2, "max_length": 16, "evaluations": 6, "patience": 100}
    return TrainConfig(**{**sizes, "steps": 60, "checkpoint_seconds": 0.0, **changes})


def discover(world: World, out: Path, *, estimator: str = "prefix", **options: Any) -> None:
    """Explain both labels in every sequence, in small shards, by the quicker estimator unless told otherwise."""
    from oscar_causal.discovery import local
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.discovery.oneshot import DiscoveryConfig
    from oscar_causal.discovery.prefix import PrefixConfig

    local.SHARD_SEQUENCES = SHARD
    settings: dict[str, Any] = {
        "intervention": InterventionConfig(contexts=16, redraws=200),
        "prefix": PrefixConfig(context=2, contexts=8, threshold=1.0),
    }
    config = DiscoveryConfig(estimator=estimator, **{estimator: settings[estimator]}, labels=("fault", "common"))
    local.discover_folder(world.model, world.fleet, out, config, **options)


def train(world: World, out: Path, **options: Any) -> None:
    """Train with a checkpoint after every step; two folds, so that a kill also falls between them."""
    from oscar_causal.data.sequences import read_dataset
    from oscar_causal.density import fitting

    fitting.train(read_dataset(world.fleet), out, _train_config(steps=30), folds=2, **options)


def _work(what: str, folder: str, out: str, workers: str) -> None:
    """The child: goes on with a run and tells when the work begins and how it proceeds."""
    if "RANK" not in os.environ:
        os.setpgid(0, 0)  # its workers die with it
    tell: Callable[..., None] = lambda *done: print(*done[:2], flush=True)  # noqa: E731
    print("begun", flush=True)
    if what == "train":
        train(World(Path(folder)), Path(out), resume=True, on_step=tell)
    else:
        discover(World(Path(folder)), Path(out), resume=True, workers=int(workers), on_progress=tell)


def start(
    what: str,
    world: World,
    out: Path,
    *,
    workers: int = 1,
    launcher: tuple[str, ...] = (sys.executable,),
) -> Any:
    """Start a run as a process of its own, with the threads of this one; it goes on where an earlier one stopped."""
    import torch

    command = [*launcher, __file__, "work", what, str(world.folder), str(out), str(workers)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads()), "OMP_WAIT_POLICY": "PASSIVE"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def kill_9(process: Any, wait: float, *, whole_group: bool = True) -> bool:
    """Wait until the work has begun and `wait` seconds more, then kill -9; False when it was over before."""
    process.stdout.readline()
    deadline = time.monotonic() + wait
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.002)
    alive = process.poll() is None
    if alive:
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    if not alive and process.returncode != 0:
        raise AssertionError(f"a run failed on its own: {err}")
    return alive


def stop_verb(words: list[Any], number: int, ready: Callable[[], bool] = lambda: True, wait: float = 0.0) -> Any:
    """Run `oscar`; when it hears signals and `ready()`, wait, and signal its whole group as a terminal does.

    Returns the process, ended, with what it said on stderr as `told` and whether it was over before as `over`.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-m", "oscar_causal", *map(str, words), "-q"]
    process: Any = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    while process.poll() is None and not (_hears_signals(process.pid) and ready()):
        time.sleep(0.002)
    time.sleep(wait)
    process.over = process.poll() is not None
    if not process.over:
        os.killpg(process.pid, number)
    _, process.told = process.communicate(timeout=120)
    return process


def _hears_signals(pid: int) -> bool:
    """Are there handlers of SIGINT and SIGTERM? Before, the interpreter itself is starting."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return all(caught >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM))


def all_gone(group: int, seconds: float = 30.0) -> bool:
    """Do all processes of a group end soon? (Who has ended and was not waited for counts as gone.)"""
    deadline = time.monotonic() + seconds
    while alive := any(_is_alive_in(group, path) for path in Path("/proc").glob("[0-9]*/stat")):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return not alive


def _is_alive_in(group: int, path: Path) -> bool:
    try:
        state, _, of, *_ = path.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return False
    return int(of) == group and state != "Z"


def digest(folder: Path) -> str:
    """A hash of everything in a results or model folder but times, hosts and speeds."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in PASSING):
        content = path.read_bytes()
        if path.name == "training.json":
            facts = json.loads(content)
            content = repr([facts[key] for key in ("config", "history", "steps", "subjects", "tokens")]).encode()
        elif path.name == "boundaries.jsonl":
            rows = [json.loads(line) for line in content.splitlines()]
            content = repr(sorted(str({**row, "seconds": None}) for row in rows)).encode()
        total.update(str(path.relative_to(folder)).encode() + hashlib.sha256(content).digest())
    return total.hexdigest()


def kill_until_done(what: str, world: World, out: Path, rng: np.random.Generator, **how: Any) -> list[float]:
    """Kill a run up to four times, letting it go on after each; returns the moments. `out` appears at the end alone."""
    kills: list[float] = []
    while len(kills) < 4:
        wait = float(rng.uniform(0.0, how["span"]))
        process = start(what, world, out, workers=how.get("workers", 1))
        if not kill_9(process, wait):
            break
        kills.append(round(wait, 3))
        if out.exists():  # killed after the last rename: it must be whole already
            return kills
    else:
        process = start(what, world, out, workers=how.get("workers", 1))
        _, err = process.communicate(timeout=300)
        if process.returncode:
            raise AssertionError(err)
    return kills


def campaign_of_kills(what: str, world: World, folder: Path, seed: int, at_least: int) -> dict[str, Any]:
    """At least so many kills of `what`, spread over as many runs as it takes; every other run has two workers."""
    begun = time.time()
    whole = folder / f"{what}-whole"
    (train if what == "train" else discover)(world, whole)
    span = (time.time() - begun) * 1.05
    expected, rng, runs = digest(whole), np.random.default_rng(seed), []
    while sum(len(run["kills"]) for run in runs) < at_least:
        out = folder / f"{what}-{len(runs)}"
        workers = 1 + (len(runs) % 2 if what == "discover" else 0)
        kills = kill_until_done(what, world, out, rng, span=span, workers=workers)
        left = [path.name for path in folder.glob(f"{out.name}.partial*")]
        runs.append({"workers": workers, "kills": kills, "identical": digest(out) == expected and not left})
    return _verdict(f"kill -9 of {what} at random moments, then --resume", runs, [len(run["kills"]) for run in runs])


def _verdict(fault: str, runs: list[dict[str, Any]], counts: list[int]) -> dict[str, Any]:
    good = sum(run["identical"] for run in runs)
    return {"fault": fault, "times": sum(counts), "runs": len(runs), "identical": good, "details": runs}


def campaign_of_signals(world: World, folder: Path, seed: int, times: int) -> Iterator[dict[str, Any]]:
    """Ctrl-C and SIGTERM to all processes of a verb at random moments; then the verb again, with --resume if it can."""
    verbs: dict[str, list[Any]] = {
        "synth": ["synth", "--preset", "demo", "--sequences", 40_000, "--workers", 2],
        "train": ["train", world.fleet, "--steps", 20, "--workers", 2],
        "baseline": ["baseline", "iamb", world.fleet, "--workers", 2],
        "discover": ["discover", world.model, world.fleet, "--workers", 2, "--contexts", 32],
    }
    seconds: dict[str, float] = {}
    rng = np.random.default_rng(seed)
    for number in (signal.SIGINT, signal.SIGTERM):
        runs = []
        for k, (name, words) in enumerate([*verbs.items()] * times):
            whole, out = folder / f"{name}-verb", folder / f"{name}-{number.name}-{k}"
            begun = time.time()
            if name not in seconds:
                _run_verb([*words, "--out", whole])
                seconds[name] = time.time() - begun
            wait = float(rng.uniform(0.0, seconds[name]))
            runs.append(_stop_and_go_on(name, [*words, "--out", out], number, wait, whole))
        yield _verdict(f"{number.name} to all processes of a verb, then again", runs, [not r["over"] for r in runs])


def _stop_and_go_on(name: str, words: list[Any], number: signal.Signals, wait: float, whole: Path) -> dict[str, Any]:
    """One line, the right code and nobody left after a signal; the same files after the verb was run again."""
    process, out = stop_verb(words, number, wait=wait), Path(words[-1])
    facts = {"over": process.over, "code": process.returncode, "lines": process.told.count("\n")}
    clean = all_gone(process.pid) and (process.over or (facts["code"], facts["lines"]) == (128 + number, 1))
    if not out.exists():
        _run_verb([*words, *([] if name == "synth" else ["--resume"])])
    same = digest(out) == digest(whole) and not partial_names(out)
    return {"verb": name, "moment": round(wait, 3), **facts, "clean": clean, "identical": bool(clean and same)}


def _run_verb(words: list[Any]) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-m", "oscar_causal", *map(str, words), "-q"]
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=600)


def can_unshare() -> bool:
    """May this user give processes ids of their own?"""
    try:
        return subprocess.run(["unshare", "-pf", "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def make_tables(folder: Path) -> list[Path]:
    """Two different tables to import, large enough to take a moment."""
    tables = [folder / "a.csv", folder / "b.csv"]
    for table in tables:
        rows = "".join(f"{table.stem}{k // 20},{k % 20},E{k % 7}\n" for k in range(100_000))
        table.write_text("sequence_id,time,event\n" + rows)
    return tables


def two_imports(tables: list[Path], out: Path, *, apart: float) -> dict[str, Any]:
    """Both have the process id 1 or 2; one must win and the other must say so in one line."""
    running = []
    for table in tables:
        command = [
            "unshare",
            "-pf",
            sys.executable,
            "-m",
            "oscar_causal",
            "import",
            str(table),
            "--out",
            str(out),
            "-q",
        ]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        time.sleep(apart)
    told = [process.communicate(timeout=120)[1] for process in running]
    codes = [process.returncode for process in running]
    won = [table for table, code in zip(tables, codes, strict=True) if code == 0]
    lines = [text.count("\n") for text, code in zip(told, codes, strict=True) if code]
    whole = len(won) == 1 and lines == [1] and _holds(out, won[0])
    return {"apart": apart, "codes": codes, "identical": whole and not partial_names(out)}


def partial_names(out: Path) -> list[str]:
    return [path.name for path in out.parent.glob(f"{out.name}.partial*")]


def _holds(out: Path, table: Path) -> bool:
    """Does the dataset hold all sequences of the table and no others?"""
    from oscar_causal.data.sequences import read_dataset

    data = read_dataset(out)
    expected = {line.split(",")[0] for line in table.read_text().splitlines()[1:]}
    return set(data.sequence_ids.to_pylist()) == expected and int(data.lengths.sum()) == 100_000


def campaign_of_equal_ids(folder: Path, times: int) -> dict[str, Any]:
    """Two imports into one folder, begun at the same moment or a little later."""
    tables = make_tables(folder)
    runs = [
        two_imports(tables, folder / f"equal-{k}", apart=float(apart))
        for k, apart in enumerate(np.linspace(0.0, 0.5, times if can_unshare() else 0))
    ]
    return _verdict("two imports with one process id into one folder", runs, [1] * len(runs))


@contextmanager
def two_nodes() -> Iterator[tuple[Any, Any]]:
    """A real Ray cluster of two nodes on this machine, one CPU each; yields it and the node that can be spared."""
    import ray
    from ray.cluster_utils import Cluster

    arguments = {"num_cpus": 1, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**arguments, "include_dashboard": False})
    try:
        spare = cluster.add_node(**arguments)
        ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
        yield cluster, spare
    finally:
        ray.shutdown()
        cluster.shutdown()


def kill_ray_worker(_cluster: Any, _spare: Any) -> None:
    """kill -9 of one actor that explains shards; Ray writes what a worker does into its title."""
    titles = {int(path.parent.name): path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")}
    mine = [pid for pid, title in titles.items() if b"RayExplainer" in title and _is_descendant(pid)]
    os.kill(mine[0], signal.SIGKILL)


def _is_descendant(pid: int) -> bool:
    """Was this process started by this one, or by one that was?"""
    while pid > 1 and pid != os.getpid():
        status = Path(f"/proc/{pid}/stat").read_text()
        pid = int(status.rpartition(")")[2].split()[1])
    return pid == os.getpid()


def remove_ray_node(cluster: Any, spare: Any) -> None:
    """One of the two nodes goes, with whatever runs and lies on it."""
    cluster.remove_node(spare, allow_graceful=False)


def ray_run(world: World, out: Path, cluster: Any, spare: Any, fault: Callable[[Any, Any], None], after: int) -> int:
    """Discover on two nodes; the fault strikes after so many shards. Returns how many shards were written."""
    told: list[int] = []

    def on_progress(done: int, _total: int) -> None:
        told.append(done)
        if len(told) == after:
            fault(cluster, spare)

    discover(world, out, engine="ray", on_progress=on_progress)
    return len(told)


def campaign_on_ray(world: World, folder: Path, times: int) -> Iterator[dict[str, Any]]:
    """Each Ray fault so many times, at different moments."""
    expected = digest(folder / "discover-whole")
    for name, fault in (("a Ray worker killed", kill_ray_worker), ("a Ray node removed", remove_ray_node)):
        runs = []
        for k in range(times):
            out = folder / f"{fault.__name__}-{k}"
            with two_nodes() as (cluster, spare):
                shards = ray_run(world, out, cluster, spare, fault, after=1 + 3 * k)
            runs.append({"shards": shards, "identical": digest(out) == expected and shards == SEQUENCES // SHARD})
        yield _verdict(f"{name} in the middle of a run", runs, [1] * times)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process may grow past `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fill_disk(path: Path) -> None:
    """Write until there is no space."""
    try:
        with path.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(512))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def campaign_of_full_disks(world: World, folder: Path, times: int) -> dict[str, Any]:
    """No file may grow past a limit that moves up with each run; without the limit the run goes on."""
    from oscar_causal.errors import FolderError

    expected, runs = digest(folder / "discover-whole"), []
    for limit in np.linspace(200, 6000, times).astype(int).tolist():
        out = folder / f"full-{limit}"
        told = ""
        try:
            with file_size_limit(limit):
                discover(world, out)
        except FolderError as error:
            told = str(error)
        hidden = not told or not out.exists()
        if told:
            discover(world, out, resume=True)
        runs.append({"limit": limit, "told": bool(told), "identical": hidden and digest(out) == expected})
    return _verdict("no file may grow past a limit (RLIMIT_FSIZE), then --resume", runs, [run["told"] for run in runs])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--kills", type=int, default=20, help="Of train and of discover each.")
    parser.add_argument("--ray", type=int, default=3, help="Times each Ray fault happens.")
    parser.add_argument("--disks", type=int, default=12, help="Full disks.")
    parser.add_argument("--signals", type=int, default=3, help="Times each signal reaches each of four verbs.")
    parser.add_argument("--pairs", type=int, default=8, help="Pairs of imports with one process id.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commit", help="Of the program, for the record; by default the one checked out here.")
    given = parser.parse_args()
    begun, rows, program = time.time(), [], commit(given.commit)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = make_world(folder / "world")
        for row in _campaigns(world, folder, given):
            print(
                f"{row['fault']}: {row['times']} times in {row['runs']} runs, {row['identical']} identical", flush=True
            )
            rows.append(row)
    _write(given.out, rows, seed=given.seed, seconds=time.time() - begun, commit=program)
    return int(any(row["identical"] != row["runs"] for row in rows))


def _campaigns(world: World, folder: Path, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    yield campaign_of_kills("discover", world, folder, given.seed, given.kills)
    yield campaign_of_kills("train", world, folder, given.seed, given.kills)
    yield campaign_of_full_disks(world, folder, given.disks)
    yield from campaign_of_signals(world, folder, given.seed, given.signals)
    yield campaign_of_equal_ids(folder, given.pairs)
    yield from campaign_on_ray(world, folder, given.ray)


def _write(out: Path, rows: list[dict[str, Any]], **facts: Any) -> None:
    import torch

    cores = f"{os.cpu_count()} cores, {torch.get_num_threads()} threads"
    facts |= {"machine": f"{platform.machine()}, {cores}", "python": platform.python_version()}
    lines = [
        "# Faults",
        "",
        "`make faults`: real processes, real signals. *Identical*: the finished folder has the files,",
    ]
    lines += ["byte for byte, of an undisturbed run (times and hosts apart), and nothing else is left beside it.", ""]
    lines += ["| fault | times | runs | identical |", "|---|---|---|---|"]
    lines += [f"| {row['fault']} | {row['times']} | {row['runs']} | {row['identical']} |" for row in rows]
    told = f"Seed {facts['seed']}, {facts['machine']}, {facts['seconds']:.0f} s, commit {facts['commit']}."
    lines += ["", f"{told} Moments: `faults.json`.", ""]
    out.mkdir(parents=True, exist_ok=True)
    (out / "faults.md").write_text("\n".join(lines))
    (out / "faults.json").write_text(json.dumps({**facts, "faults": rows}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        _work(*sys.argv[2:])
    else:
        sys.exit(main())
