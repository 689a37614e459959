"""A small fleet with nasty names, a model trained for two steps, results and a population by hand, a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from oscar_causal.data.folders import write_json
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.writer import write_dataset
from oscar_causal.density.checkpoint import model_digest
from oscar_causal.density.fitting import train
from oscar_causal.density.settings import TrainConfig
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import ResultsWriter
from oscar_causal.graph.drift import DRIFT_SCHEMA
from oscar_causal.graph.interplay import Interplay
from oscar_causal.graph.population import BOUNDARY_SCHEMA
from oscar_causal.graph.rule_drift import RULE_DRIFT_SCHEMA
from oscar_causal.graph.rules.expert import Comparison
from oscar_causal.graph.rules.proposal import Fidelity, RuleProposal, Share
from oscar_causal.graph.rules.twins import Twin

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LABELS = ("engine", "<b>brakes</b>", "\u202eright to left")


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _records(nasty: tuple[str, ...]) -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    records = []
    for index in range(40):
        length = 150 if index == 1 else int(rng.integers(8, 24))
        records.append(
            {
                "sequence_id": f"car {index}" if index else '</script><img src=x onerror="alert(1)">',
                "subject_id": f"subject {index // 2}",
                "events": [nasty[k] for k in rng.integers(0, len(nasty), length)],
                "times": np.cumsum(rng.integers(0, 4000, length)).astype(float).tolist(),
                "labels": [LABELS[k] for k in range(3) if (index + k) % 3],
                "static": [("variant", "<i>van</i>")],
            }
        )
    return records


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, nasty: tuple[str, ...]) -> Path:
    """A folder with `fleet`, `model` and `results`."""
    place = tmp_path_factory.mktemp("report")
    schema = pa.schema(
        [
            ("sequence_id", pa.string()),
            ("subject_id", pa.string()),
            ("events", pa.list_(pa.string())),
            ("times", pa.list_(pa.float64())),
            ("labels", pa.list_(pa.string())),
            ("static", pa.map_(pa.string(), pa.string())),
        ]
    )
    write_dataset(place / "fleet", [pa.Table.from_pylist(_records(nasty), schema=schema)])
    write_json(place / "fleet" / "names.json", {nasty[10]: "<u>described</u>", "engine": "the engine & its <parts>"})
    write_json(place / "fleet" / "rules.json", {"engine": 'A & !"a,b"'})
    config = TrainConfig(steps=2, min_context=5, max_length=100, validation=0.3)
    train(read_dataset(place / "fleet"), place / "model", config)
    write_results(place / "results", boundaries(place / "fleet"), place)
    return place


def boundaries(fleet: Path) -> list[Boundary]:
    """Two labels for each of 30 sequences, with accepted, refused and unresolved events by turns."""
    data = read_dataset(fleet)
    rng = np.random.default_rng(7)
    found = []
    for row in range(30):
        events = data.events_of(row)
        kinds = list(dict.fromkeys(events))
        for label in LABELS[: 1 + row % 3]:
            evidence = tuple(_evidence(event, events, k, row, rng) for k, event in enumerate(kinds))
            found.append(
                Boundary(
                    sequence_id=data.sequence_ids[row].as_py(),
                    label=label,
                    observed=(True, False, None)[row % 3],
                    probability=float(rng.random()),
                    evidence=evidence,
                    trusted=row % 4 != 0,
                    seen_in_training=row % 5 == 0,
                    contexts=64,
                    flags=("2 unknown events",) if row % 6 == 0 else (),
                )
            )
    return found


def _evidence(event: str, events: list[str], k: int, row: int, rng: np.random.Generator) -> EventEvidence:
    positions = tuple(i for i, name in enumerate(events) if name == event)
    verdict = ("cause", "no effect", "inhibitor", "not resolvable")[k % 4] if row % 7 else "no effect"
    size = float(rng.uniform(0.1, 0.9))
    effect = -size if verdict == "inhibitor" else size
    accepted = verdict in ("cause", "inhibitor")
    bare = row % 2 == 0  # an estimator that defines no more
    return EventEvidence(
        event=event,
        positions=positions,
        verdict=verdict,  # type: ignore[arg-type]
        effect=effect,
        se=0.1,
        n_kept=40,
        n_replaced=24,
        p_value=0.001 if accepted else None,
        q_value=0.003 if accepted and not bare else None,
        indicator=effect if accepted else None,
        indicator_sd=0.2 if accepted and not bare else None,
        ci_low=effect - 0.1 if accepted and not bare else None,
        ci_high=effect + 0.1 if accepted and not bare else None,
        cmi_nats=0.4 if accepted else None,
        alone=0.5 * effect if accepted and not bare else None,
        borderline=accepted and k == 4,
        source="both" if accepted and k == 8 else "evidence",
        agreement=0.75 if accepted and not bare else None,
    )


def write_results(out: Path, found: list[Boundary], place: Path) -> None:
    """A results folder whose run names the fleet and the model of `place`."""
    run = {
        "estimator": "intervention",
        "estimand": "controlled direct effect",
        "config": {"intervention": {"alpha": 0.05, "contexts": 64}, "seed": 0},
        "seed": 0,
        "dataset": {
            "path": str(place / "fleet"),
            "digest": read_dataset(place / "fleet").info["digest"],
        },
        "model": {"path": str(place / "model"), "digest": model_digest(place / "model")},
        "versions": {"oscar": "0.1.0"},
        "fingerprint": "f" * 64,
    }
    writer = ResultsWriter(out, run)
    writer.write_shard(0, found)
    writer.finish()


@pytest.fixture(scope="session")
def scored(place: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Boundary]]:
    """The same results from a run that says what acceptance rests on: the first cause of a pair on its score."""
    found = [replace(item, evidence=_by_score(item)) for item in boundaries(place / "fleet")]
    out = tmp_path_factory.mktemp("scored") / "results"
    write_results(out, found, place)
    return out, found


def _by_score(item: Boundary) -> tuple[EventEvidence, ...]:
    first = next((event for event in item.causes if event.verdict == "cause"), None)
    told = {"accepted_by": "score", "share": 0.62, "q_value": 0.25}
    return tuple(
        replace(event, **(told if event is first else {"accepted_by": "test" if event.accepted else None}))  # type: ignore[arg-type]
        for event in item.evidence
    )


@pytest.fixture(scope="session")
def found(place: Path) -> list[Boundary]:
    """What the results folder holds, as written."""
    return boundaries(place / "fleet")


@pytest.fixture
def moved(place: Path, tmp_path: Path) -> Path:
    """The results alone, with a run that names a fleet and a model which are not there."""
    shutil.copytree(place / "results", tmp_path / "results")
    (tmp_path / "results" / "checksums.json").unlink()
    path = tmp_path / "results" / "run.json"
    path.write_text(path.read_text().replace(str(place), str(tmp_path / "gone")))
    return tmp_path / "results"


@pytest.fixture(scope="session")
def write() -> Callable[..., None]:
    """Write a results folder."""
    return write_results


PROPOSALS = (
    RuleProposal(
        label="engine", status="proposed", rule='A & "<b>x</b>"', confidence=0.95, positives=40, method="truth table",
        fidelity=Fidelity(Share(9, 10), Share(8, 10), Share(0, 0), Share(7, 7)),
        rule_without_label=("car 3", "gone"), label_without_rule=(),
    ),
    RuleProposal(
        label="<b>brakes</b>", status="not identifiable from this data", rule="A | C", confidence=0.1, positives=12,
        method="patterns", reasons=("no sequence lacks A alone", Twin("A", "<i>B</i>", 3, 2).sentence()),
        twins=(Twin("A", "<i>B</i>", 3, 2),),
    ),
    RuleProposal("\u202eright to left", "too few positives", None, 0.0, 3, "none", ("3 sequences with the label",)),
)  # fmt: skip
PAIRS = (
    Interplay("engine", "<b>brakes</b>", 9, ("A",), 0.5, 0.0001, 0.3, 0.002, 0.4, 0.6, "still dependent"),
    Interplay("engine", "\u202eright to left", 4, (), 0.2, 0.01, 0.0, 1.0, None, None, "explained by their boundaries"),
    Interplay("<b>brakes</b>", "\u202eright to left", 4, ("A",), 0.01, 0.5, 0.0, 1.0, 0.1, 0.0, "independent"),
)


@pytest.fixture(scope="session")
def population(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A population folder of all kinds of answers, with nasty names."""
    folder = tmp_path_factory.mktemp("population") / "p"
    folder.mkdir()
    settings = {"boundaries": {"alpha": 0.05, "delta": 0.05}, "window_days": 30}
    write_json(folder / "population.json", {"kind": "population", "format_version": 1, "settings": settings})
    write_json(folder / "proposals.json", {item.label: item.to_json() for item in PROPOSALS})
    write_json(folder / "interplay.json", {"pairs": [item.to_json() for item in PAIRS]})
    compared = Comparison(
        "engine", "A", "A & B", "looser", ("<i>B</i>",), (), 5, 4, 0, 0, 3, ("car 5",), (), sequences=40
    )
    told = {"status": "proposed", "sentence": compared.sentence(), "from": None, "to": "2024-02-01T00:00:00+00:00"}
    write_json(
        folder / "expert.json", {"file": "<u>book</u>.json", "rules": {"engine": {**compared.to_json(), **told}}}
    )
    edges = [
        {"label": "engine", "event": "A", "verdict": "cause", "effect": 0.4, "effect_sd": 0.1, "ci_low": 0.3,
         "ci_high": 0.5, "q_value": 0.001, "tested": 30, "accepted_share": 0.5, "world_p_value": 0.002},
        {"label": "engine", "event": "<i>B</i>", "verdict": "inhibitor", "effect": -0.2, "tested": 20,
         "inhibitor_share": 0.25, "world_p_value": 0.6},
        {"label": "engine", "event": "C", "verdict": "undecided", "effect": 0.01, "tested": 5},
    ]  # fmt: skip
    _write_table(folder, "boundaries", edges, BOUNDARY_SCHEMA)
    windows = [{"from": datetime(2024, m, 1, tzinfo=UTC), "to": datetime(2024, m + 1, 1, tzinfo=UTC)} for m in (1, 2)]
    effects = [
        {"label": "engine", "event": event, **window, "tested": 9, "effect": 0.4 - 0.3 * k * moved,
         "effect_elsewhere": 0.1 + 0.3 * k, "q_value": 0.01, "changed": bool(k and moved)}
        for event, moved in (("A", 1), ("C", 0)) for k, window in enumerate(windows)
    ]  # fmt: skip
    _write_table(folder, "drift", effects[::-1], DRIFT_SCHEMA)
    fits = [
        {"label": "engine", "rule": "A", **window, "positives": 20, "precision": 0.9 - 0.5 * k, "recall": 1.0,
         "precision_elsewhere": None, "recall_elsewhere": 1.0, "q_value": 0.02, "changed": bool(k),
         "rule_here": "A & C" if k else None, "relation": "stricter" if k else None}
        for k, window in enumerate(windows)
    ]  # fmt: skip
    _write_table(folder, "rule_drift", fits, RULE_DRIFT_SCHEMA)
    return folder


def _write_table(folder: Path, name: str, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / f"{name}.parquet")


class Visit:
    """An open page, with everything it asked for and complained about."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("a dialog"), dialog.dismiss()))
        self.url = file.as_uri()

    def go(self, fragment: str = "") -> Any:
        self.page.goto(self.url + fragment)
        self.page.wait_for_selector("main h2", state="attached", timeout=10_000)
        self.page.evaluate(SETTLED)  # another view of a page that is open is drawn a moment later
        return self.page


SETTLED = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"


@pytest.fixture(scope="module")
def open_page() -> Iterator[Callable[..., Visit]]:
    """Visit a file in Chromium, which is closed with the module: its event loop must not meet other tests'."""
    from playwright.sync_api import sync_playwright

    assert CHROMIUM is not None, "OSCAR_REQUIRE_BROWSER=1: expected chromium on the path, found none"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield lambda file, **options: Visit(browser, file, **options)
        browser.close()
