"""Shared by all tests: the command in this very process, and nasty names."""

from __future__ import annotations

import base64
import os
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.cli import main

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command does: threads that spin starve their neighbours
os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels without a GPU; Triton reads it when it is imported

NASTY = (
    "A",
    "a,b",
    'say "hi"',
    '"',
    "two\nlines",
    "carriage\rreturn",
    "both\r\nends",
    " spaces ",
    "\ttab",
    "emoji 🚗💥",
    "</script><script>alert(1)</script>",
    '=cmd("calc")',
    "+1",
    "-",
    "0",
    "1",
    "NULL",
    "nan",
    "naïve é",
    "\u202eright to left",
    "\x85\u2028 strange line ends",
    "\\",
    "#",
    "'",
)


def pytest_configure() -> None:
    """The same tests everywhere: examples of hypothesis may take as long as they take on a busy machine, and Ctrl-C
    is heard also where a shell has started us in the background, which ignores it in all that we start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if find_spec("hypothesis") is not None:
        from hypothesis import HealthCheck, settings

        settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("any machine")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Right before pytest's closing line: what was left out, why, and which command brings it."""
    yield
    reasons = Counter(map(_why_skipped, terminalreporter.stats.get("skipped", [])))
    if reasons:
        told = "; ".join(f"{count} ({reason})" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"left out: {told}")


def _why_skipped(report: Any) -> str:
    """The reason of a skipped test; a package that could not be imported is one that the set-up brings."""
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    return re.sub(r"^could not import '([\w.]+)'.*", r"no \1: `make setup` brings it", reason)


@pytest.fixture(scope="session", autouse=True)
def _without_waiting_for_the_disk() -> Iterator[None]:
    """A new folder waits about 40 ms until it is on the disk, and no test here cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: None)
        yield


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    def refused(self, *words: str) -> str:
        """Assert a failure told in exactly one line that holds these words; returns the line."""
        assert self.code != 0
        assert self.out == ""
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("oscar: ")
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err
        return self.err


@pytest.fixture(scope="session")
def nasty() -> tuple[str, ...]:
    """Names that break careless programs."""
    return NASTY


@pytest.fixture
def oscar(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run `oscar ...` in this process; what it prints is caught at the file descriptors."""

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["oscar", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        caught = capfd.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0 if code is None else 1, caught.out, caught.err)

    return run


@dataclass(frozen=True)
class Toy:
    """A small dataset folder and folders of models whose weights are set by hand: nothing is trained."""

    fleet: Path
    model: Path
    other: Path
    """Agrees with `model` on label x (event E0), not on y (E1 there, E2 here)."""
    folds: Path
    """Two folds that differ likewise, neither of which knows any subject of the fleet."""
    counts: dict[str, int]
    """What is odd about the fleet, counted while it was made."""


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """Thirty sequences of 4 to 45 events for models that take 32, know 20 of 24 event types and two of three labels."""
    from oscar_causal.data.folders import write_json
    from oscar_causal.data.vocabulary import Vocabulary
    from oscar_causal.data.writer import write_dataset

    place = tmp_path_factory.mktemp("toy")
    table, counts = _toy_table()
    write_dataset(place / "fleet", [table])
    vocabulary = Vocabulary(tuple(f"E{k}" for k in range(20)), ("x", "y"))
    for seed, (name, causes) in enumerate(
        {"model": "E0 E1", "other": "E0 E2", "folds/fold-0": "E0 E1", "folds/fold-1": "E0 E2"}.items()
    ):
        _write_toy_model(place / name, vocabulary, seed, causes.split())
    write_json(place / "folds" / "folds.json", {"kind": "folds", "format_version": 1, "folds": 2, "seed": 0})
    return Toy(*(place / name for name in ("fleet", "model", "other", "folds")), counts)


def _toy_table() -> tuple[Any, dict[str, int]]:
    import pyarrow as pa

    rng = np.random.default_rng(7)
    names = ("without_labels", "shorter_than_c", "cut", "cut_events", "unknown_events", "unknown_labels")
    rows, counts = [], dict.fromkeys(names, 0)
    for k, length in enumerate([4, 45, *rng.integers(6, 40, 28).tolist()]):
        events = [f"E{e}" for e in rng.integers(0, 24, length)]
        labels = [["x", "y"], ["y"], [], ["z"], None][k % 5]
        counts["without_labels"] += not set(labels or ()) & {"x", "y"}
        counts["unknown_labels"] += "z" in (labels or ())
        counts["shorter_than_c"] += length < 5
        counts["cut"] += length > 32
        counts["cut_events"] += max(0, length - 32)
        counts["unknown_events"] += sum(int(event[1:]) >= 20 for event in events[-32:])
        times = np.cumsum(rng.integers(0, 3, length)).astype(float).tolist()
        rows.append({"sequence_id": f"car {k}", "events": events, "times": times, "labels": labels})
    return pa.Table.from_pylist(rows), counts


def _write_toy_model(folder: Path, vocabulary: Any, seed: int, causes: list[str]) -> None:
    """Label j comes with event causes[j]: its vector in the running sum points where the label looks. Else noise."""
    import torch

    from oscar_causal.data.folders import write_json
    from oscar_causal.density.checkpoint import save_model
    from oscar_causal.density.model import OscarModel
    from oscar_causal.density.transformer import Network, NetworkConfig

    shape = NetworkConfig(vocabulary.size, len(vocabulary.labels), width=32, heads=2, layers=1, hidden=48)
    generator = torch.Generator().manual_seed(seed)
    network = Network(shape)
    with torch.no_grad():
        for name, weights in network.named_parameters():
            if "norm" not in name:
                weights.copy_(0.02 * torch.randn(weights.shape, generator=generator))
        network.label_head.bias.fill_(-3.0)
        network.bag.events.weight[:, : len(causes)] = 0.0
        for label, event in enumerate(causes):
            network.bag.events.weight[vocabulary.event_ids[event], label] = 10.0
            network.bag.out.weight[label, label] = 10.0
            network.label_head.weight[label, label] = 2.0
    folder.mkdir(parents=True)
    save_model(OscarModel(network.eval(), vocabulary, (), max_length=32, min_context=5), folder)
    judged = {label: {"trusted": label == "x"} for label in vocabulary.labels}
    write_json(folder / "quality.json", {"kind": "quality", "format_version": 1, "per_label": judged})
    write_json(folder / "training.json", {"subjects": base64.b64encode(b"").decode()})
