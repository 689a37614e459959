"""`oscar train --tensorboard`: the curves hold what was told, and nothing is asked for without the option."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from oscar_causal.errors import MissingExtra
from oscar_causal.verbs.train import curves


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
