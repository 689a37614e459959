"""`oscar train --tensorboard`: the curves hold what was told, and nothing is asked for without the option."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from oscar_causal.data.writer import write_dataset
from oscar_causal.errors import MissingExtra
from oscar_causal.verbs.train import curves, run


@pytest.mark.filterwarnings("ignore")
def test_curves_hold_the_figures_of_every_step(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with curves(tmp_path / "curves") as draw:
        for step in range(1, 4):
            draw(step, {"label_loss": 1.0 / step, "tokens_per_s": 100.0 * step})
    read = EventAccumulator(str(tmp_path / "curves")).Reload()
    assert [(item.step, round(item.value, 4)) for item in read.Scalars("label_loss")] == [
        (1, 1.0),
        (2, 0.5),
        (3, 0.3333),
    ]
    assert [item.value for item in read.Scalars("tokens_per_s")] == [100.0, 200.0, 300.0]


def test_without_a_folder_nothing_happens() -> None:
    with curves(None) as draw:
        draw(1, {"label_loss": 1.0})


def test_the_missing_package_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtra, match=r"--tensorboard needs the package tensorboard"), curves(tmp_path / "c"):
        pass


def test_what_the_model_reads_and_what_not_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lengths = [6 + 5 * (i == 3) for i in range(20)]
    table = {
        "sequence_id": [str(i) for i in range(20)],
        "events": [["A"] * n for n in lengths],
        "times": [[float(k) for k in range(n)] for n in lengths],
        "mileage": pa.array([[1.0] * n for n in lengths], pa.list_(pa.float32())),
        "labels": [["y"][: i % 2] for i in range(20)],
        "static": pa.array([[("site", "a")], [("age", "3")]] * 10, pa.map_(pa.string(), pa.string())),
    }
    write_dataset(tmp_path / "data", [pa.table(table)])
    run(tmp_path / "data", tmp_path / "one", steps=1, max_length=8)
    said = capsys.readouterr().out.replace("\n", " ")
    for words in ("channels mileage", "static keys age, site (stored, never read)", "c = 1", "3 events of 1 sequences"):
        assert words in said
    card = (tmp_path / "one" / "README.md").read_text()
    assert "channels mileage; does not read static keys age, site" in card
    run(tmp_path / "data", tmp_path / "two", steps=1, max_length=8, json=True)
    told = json.loads(capsys.readouterr().out)["inputs"]
    assert told == json.loads((tmp_path / "two" / "training.json").read_text())["inputs"]
    cut = {"sequences_cut": 1, "events_cut": 3}
    assert told == {"channels": ["mileage"], "static_not_read": ["age", "site"], "min_context": 1, **cut}
