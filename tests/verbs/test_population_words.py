"""What `oscar population` says of an expert's rules, of pairs of labels and of observed labels, and what it keeps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import false_discovery_control

from oscar_causal.data.folders import write_json
from oscar_causal.data.writer import write_dataset

Oscar = Callable[..., Any]
LESS = ("--looks", "0", "--contexts", "40")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("words")


@pytest.fixture
def place(oscar: Oscar, toy: Any, work: Path) -> Path:
    """A fleet in which E0 brings x and E1 brings y, as the model knows; its book says otherwise of y."""
    if not (work / "r").exists():
        rng = np.random.default_rng(3)
        rows = []
        for k in range(120):
            events = [f"E{e}" for e in rng.choice(20, 10, replace=False)]
            labels = [label for label, event in (("x", "E0"), ("y", "E1")) if event in events]
            times = list(map(float, range(10)))
            rows.append({"sequence_id": f"s{k}", "events": events, "times": times, "labels": labels})
        write_dataset(work / "fleet", [pa.Table.from_pylist(rows)])
        write_json(work / "fleet" / "rules.json", {"x": "E0", "y": "E1 & E2", "z": "E3"})
        words = [toy.model, work / "fleet", "--out", work / "r", "--contexts", "40", "--json"]
        assert oscar("discover", *words).code == 0
    return work


def test_summary_and_folder_agree(oscar: Oscar, place: Path, tmp_path: Path) -> None:
    made = oscar("population", place / "r", "--out", tmp_path / "p", "--world", "2", *LESS, "--json")
    assert made.code == 0, made.err
    told = json.loads(made.out)
    assert told["untrusted_labels"] == ["y"]  # as the model's quality.json says
    expert = json.loads((tmp_path / "p" / "expert.json").read_text())
    assert {label: item["relation"] for label, item in expert["rules"].items()} == {"x": "same", "y": "looser"}
    assert expert["rules"]["y"]["superfluous"] == ["E2"]
    assert (told["expert"]["same"], told["expert"]["looser"], told["expert"]["stricter"]) == (1, 1, 0)
    assert (told["expert"]["without_proposal"], expert["without_proposal"]) == (1, ["z"])
    pairs = json.loads((tmp_path / "p" / "interplay.json").read_text())["pairs"]
    assert told["interplay"] == Counter(pair["verdict"] for pair in pairs)
    p_values = [row["world_p_value"] for row in pq.read_table(tmp_path / "p" / "boundaries.parquet").to_pylist()]
    tested = [p for p in p_values if p is not None]
    assert told["world"]["tested"] == len(tested) == 2
    assert told["world"]["held_up"] == int((false_discovery_control(tested) <= 0.05).sum())


def test_people_are_told_in_words(oscar: Oscar, place: Path, tmp_path: Path) -> None:
    write_json(tmp_path / "mine.json", {"x": "E0 | E2", "y": "E1"})
    made = oscar("population", place / "r", "--out", tmp_path / "p", "--expert", tmp_path / "mine.json", *LESS,
                 "--world", "2")  # fmt: skip
    assert made.code == 0, made.err
    assert json.loads((tmp_path / "p" / "expert.json").read_text())["file"] == "mine.json"
    assert "stricter" in made.out.split("beside the rules of")[0]  # in the table
    assert "beside the rules of mine.json: 1 same, 1 stricter, 0 looser, 0 contradicting" in made.out
    assert "x: the proposal does without E2: only yours holds in" in made.out
    assert "pairs of labels: " in made.out
    assert "of 2 tested pairs hold up" in made.out
    table = made.out.split("beside the rules of")[0]
    assert ("│ y (not" in table, "│ x (not" in table) == (True, False)
    assert "1 labels are not trusted" in made.out


def test_what_was_not_asked_for_is_null(oscar: Oscar, place: Path, tmp_path: Path) -> None:
    made = oscar("population", place / "r", "--out", tmp_path / "p", "--no-rules", *LESS, "--json")
    told = json.loads(made.out)
    assert (told["expert"], told["interplay"], told["world"]) == (None, None, None)
    assert not (tmp_path / "p" / "expert.json").exists()
    plain = oscar("population", place / "r", "--out", tmp_path / "q", "--no-rules", *LESS)
    for word in ("beside", "pairs of labels:", "hold up"):
        assert word not in plain.out


def test_mistakes_are_one_line(oscar: Oscar, place: Path, tmp_path: Path) -> None:
    words = ["population", place / "r", "--out", tmp_path / "p", *LESS, "--expert"]
    oscar(*words, tmp_path / "none.json").refused("none.json")
    (tmp_path / "odd.json").write_text('{"x": "E0 &"}')
    oscar(*words, tmp_path / "odd.json").refused("odd.json", '"x"')
    oscar(*words, place / "fleet" / "rules.json", "--no-rules").refused("--expert", "--no-rules")
    assert [path.name for path in tmp_path.iterdir()] == ["odd.json"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("proposals.json", '{"x": ["E0"]}', "proposals.json: x: expected a JSON object"),
        ("proposals.json", '{"x": {"rule": "E0", "fidelity": {"recall": null}}}', "recall: expected a JSON object"),
        ("boundaries.parquet", None, "boundaries.parquet: expected a column 'verdict'"),
    ],
)
def test_a_report_of_an_odd_population_is_refused(
    oscar: Oscar, place: Path, tmp_path: Path, name: str, content: str | None, expected: str
) -> None:
    assert oscar("population", place / "r", "--out", tmp_path / "p", "--no-rules", *LESS, "--json").code == 0
    (tmp_path / "p" / "checksums.json").unlink()
    if content is None:
        path = tmp_path / "p" / name
        pq.write_table(pq.read_table(path).drop_columns(["verdict"]), path)
    else:
        (tmp_path / "p" / name).write_text(content)
    page = tmp_path / "page.html"
    oscar("report", place / "r", "--population", tmp_path / "p", "--out", page).refused(expected)
    assert not page.exists()
