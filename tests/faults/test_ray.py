"""`--engine ray` on a real cluster of two nodes: the bytes of `--engine local`, also without a worker or a node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.errors import FolderError, MissingExtra, UsageError


def test_without_the_package_the_extra_is_named(
    faults: Any, world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"oscar-causal\[ray\]"):
        faults.discover(world, tmp_path / "r", engine="ray")
    assert not list(tmp_path.iterdir())


def test_an_unknown_engine_is_refused(faults: Any, world: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--engine: expected one of local, ray, got 'spark'"):
        faults.discover(world, tmp_path / "r", engine="spark")


@pytest.mark.ray
@pytest.mark.filterwarnings("default")  # those of Ray are not ours to mend
def test_a_cluster_of_two_nodes(faults: Any, world: Any, undisturbed: str, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    part = np.arange(2 * faults.SHARD)
    options: dict[str, Any] = {"estimator": "intervention", "indices": part}
    faults.discover(world, tmp_path / "alone", **options)
    with faults.two_nodes() as (cluster, spare):
        faults.discover(world, tmp_path / "same", engine="ray", **options)
        assert faults.digest(tmp_path / "same") == faults.digest(tmp_path / "alone")

        missing = faults.World(tmp_path / "nowhere")
        with pytest.raises(FolderError):
            faults.discover(missing, tmp_path / "r", engine="ray")
        with pytest.raises(UsageError, match="expected a GPU"):
            faults.discover(world, tmp_path / "r", engine="ray", device="cuda")

        for name, fault in (("worker", faults.kill_ray_worker), ("node", faults.remove_ray_node)):
            shards = faults.ray_run(world, tmp_path / name, cluster, spare, fault, after=3)
            assert shards == faults.SEQUENCES // faults.SHARD, name  # nothing lost, nothing doubled
            assert faults.digest(tmp_path / name) == undisturbed, name
