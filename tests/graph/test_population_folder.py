"""The population folder: written whole, read back, merged from shards, and refused where it cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.folders import read_json
from oscar_causal.discovery.cells import CELLS
from oscar_causal.discovery.evidence import (
    CONTROL,
    FleetEvidence,
    _sum,
    empty_evidence,
    fixed,
    look_evidence,
    merge,
    pattern_evidence,
)
from oscar_causal.discovery.fleet_prior import fit_prior
from oscar_causal.discovery.prior_files import read_prior
from oscar_causal.errors import FolderError, UsageError
from oscar_causal.graph.assembling import AssemblyConfig, assemble, split_inputs
from oscar_causal.graph.population import boundaries
from oscar_causal.graph.population_folder import (
    Population,
    candidates_by_label,
    label_table,
    read_info,
    read_part,
    write_population,
)
from oscar_causal.graph.statistics import read_statistics


def shard(seed: int) -> FleetEvidence:
    rng = np.random.default_rng(seed)
    size = 60
    effect, ones = np.where(np.arange(size) % 2, 0.5, 0.0) + rng.normal(0, 0.05, size), np.ones(size, np.int64)
    pairs = {
        "label": ["y"] * size, "event": ["A" if k % 2 else "B" for k in range(size)], "window": 0 * ones,
        "group": rng.integers(0, 64, size), "present": ones, "tested": ones, "effect": fixed(effect),
        "effect_square": fixed(effect**2), "noise": fixed(np.full(size, 0.0025)), "noisy": ones,
        "causes": 0 * ones, "inhibitors": 0 * ones,
    }  # fmt: skip
    labels = {
        "label": ["y"] * 30, "window": [0] * 30, "group": rng.integers(0, 64, 30), "sequences": [1] * 30,
        "probability": fixed(np.full(30, 0.9)), "untrusted": [0] * 30, "seen": [1] * 30,
        "unlabelled": [0] * 30, "absent": [0] * 30,
    }  # fmt: skip
    looks = look_evidence(pa.array(["y", "y"]), pa.array(["A", CONTROL]), [3, 4], [86, 82])
    empty = empty_evidence()
    counted = FleetEvidence(
        _sum("pairs", [pa.table(pairs, schema=empty.pairs.schema)]),
        empty.cells,
        _sum("labels", [pa.table(labels, schema=empty.labels.schema)]),
    )
    return merge([counted, looks])


def population(evidence: FleetEvidence, name: str = "run") -> Population:
    table = boundaries(evidence)
    info = {"inputs": [name], "sequences": 30}
    return Population(info, evidence, table, label_table(evidence, table), fit_prior(evidence), rules={"y": "A & !B"})


def test_everything_comes_back(tmp_path: Path) -> None:
    whole = population(shard(0))
    write_population(tmp_path / "p", whole)
    assert read_statistics(tmp_path / "p") == whole.evidence
    assert read_part(tmp_path / "p", "boundaries.parquet").equals(whole.boundaries)
    (row,) = read_part(tmp_path / "p", "labels.parquet").to_pylist()
    assert row["causes"] == ["A"]
    assert (row["sequences"], row["seen_in_training"]) == (30, 30)
    assert row["probability"] == pytest.approx(0.9, abs=1e-6)
    assert read_info(tmp_path / "p")["inputs"] == ["run"]
    assert read_prior(tmp_path / "p").rules is not None
    assert json.loads((tmp_path / "p" / "rules.json").read_text()) == {"y": "A & !B"}
    with pytest.raises(UsageError, match="exists already"):
        write_population(tmp_path / "p", whole)


def test_cells_of_older_folders_are_left_out_and_patterns_may_be_missing(tmp_path: Path) -> None:
    looks = look_evidence(pa.array(["y"] * 2), pa.array(["A"] * 2), [3, 3], [86, 82 + 2 * CELLS])
    whole = merge([shard(0), looks])
    write_population(tmp_path / "p", population(whole))
    assert read_statistics(tmp_path / "p") == whole
    (tmp_path / "p" / "checksums.json").unlink()  # as older folders are
    (tmp_path / "p" / "statistics" / "patterns.parquet").unlink()
    assert read_statistics(tmp_path / "p") == whole  # none were counted
    info = json.loads((tmp_path / "p" / "population.json").read_text())
    (tmp_path / "p" / "population.json").write_text(json.dumps(info | {"format_version": 1}))
    old = read_statistics(tmp_path / "p")
    assert len(old.cells) == 0
    assert old.pairs.equals(whole.pairs)


def patterns(boundary: str, sequences: int) -> FleetEvidence:
    part = {"label": ["y"], "boundary": [boundary], "pattern": ["1"], "group": [3], "sequences": [sequences]}
    return pattern_evidence([part | {"positives": [1]}])


def test_labels_of_a_dataset_are_counted_once(tmp_path: Path) -> None:
    """Shards of one dataset counted it each; two datasets add up; half an overlap cannot be told apart."""
    counted = {"a": ["D"], "b": ["D"], "c": ["E"], "d": ["E", "F"]}
    for k, (name, datasets) in enumerate(counted.items()):
        found = population(merge([shard(k), patterns("x", 10)]), name)
        write_population(tmp_path / name, replace(found, info={**found.info, "counted": datasets}))

    def sequences(*names: str) -> list[int]:
        merged = assemble([], populations=[tmp_path / name for name in names])
        assert merged.info["counted"] == sorted({d for name in names for d in counted[name]})
        return merged.evidence.patterns["sequences"].to_pylist()

    assert sequences("a", "b") == sequences("b", "a") == [10]
    assert sequences("a", "b", "c") == [20]
    with pytest.raises(UsageError, match="that others counted too"):
        sequences("c", "d")


@pytest.mark.bits
def test_populations_of_shards_merge_into_the_population_of_all(tmp_path: Path) -> None:
    for k in range(3):
        write_population(tmp_path / f"p{k}", population(shard(k), f"run {k}"))
    folders = [tmp_path / f"p{k}" for k in range(3)]
    assert split_inputs(folders) == ([], folders)
    merged = assemble([], AssemblyConfig(), populations=folders[::-1])
    once = merge(shard(k) for k in range(3))
    assert merged.evidence == once
    assert merged.boundaries.drop_columns("rate").equals(boundaries(once).drop_columns("rate"))
    assert merged.info["inputs"] == ["run 0", "run 1", "run 2"]
    assert merged.prior is not None
    with pytest.raises(UsageError, match="twice"):
        assemble([], AssemblyConfig(), populations=[folders[0], folders[0]])


def test_candidates_for_rules_are_what_the_fleet_found() -> None:
    whole = population(shard(1))
    assert candidates_by_label(whole.boundaries, None) == {"y": ["A"]}


def test_a_damaged_folder_is_told(tmp_path: Path) -> None:
    write_population(tmp_path / "p", population(shard(0)))
    (tmp_path / "p" / "statistics" / "pairs.parquet").write_bytes(b"x")
    for damage in ("changed since it was written: expected SHA-256", "no Parquet file"):
        with pytest.raises(FolderError, match=rf"pairs\.parquet.*{damage}"):
            read_statistics(tmp_path / "p")
        (tmp_path / "p" / "checksums.json").unlink(missing_ok=True)
    info = read_json(tmp_path / "p" / "population.json")
    (tmp_path / "p" / "population.json").write_text(json.dumps({**info, "format_version": 99}))
    with pytest.raises(FolderError, match="newer"):
        read_info(tmp_path / "p")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"inputs": "run"}, "inputs to be a list of texts, got 'run'"),
        ({"inputs": [["run"]]}, "inputs to be a list of texts"),
        ({"counted": 7}, "counted to be a list of texts, got 7"),
        ({"settings": []}, r"settings to be an object, got \[\]"),
    ],
)
def test_odd_words_in_population_json_are_told(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    write_population(tmp_path / "p", population(shard(0)))
    info = read_json(tmp_path / "p" / "population.json")
    (tmp_path / "p" / "checksums.json").unlink()
    (tmp_path / "p" / "population.json").write_text(json.dumps({**info, **changes}))
    with pytest.raises(FolderError, match=f"population.json: expected {words}"):
        assemble([], populations=[tmp_path / "p"])


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("pairs", lambda table: table.drop_columns("effect"), "expected the columns label, event"),
        ("pairs", lambda table: pa.table({"x": [1]}), "found 'x int64'"),
        ("pairs", lambda table: changed(table, "group", 64), "'group': expected 0 to 63, got 64"),
        ("pairs", lambda table: changed(table, "tested", -1), "'tested': expected 0 or more, got -1"),
        ("pairs", lambda table: changed(table, "label", None), "'label': expected a value in every row"),
        ("cells", lambda table: changed(table, "cell", 46 * CELLS), "'cell': expected 0 to"),
        ("labels", lambda table: changed(table, "sequences", "many"), "expected the columns"),
        ("patterns", lambda table: changed(table, "pattern", "zz"), "'pattern': expected hexadecimal"),
    ],
)
def test_odd_statistics_are_told(tmp_path: Path, name: str, change: Any, words: str) -> None:
    write_population(tmp_path / "p", population(merge([shard(0), patterns("x", 3)])))
    (tmp_path / "p" / "checksums.json").unlink()
    path = tmp_path / "p" / "statistics" / f"{name}.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(FolderError, match=rf"{name}\.parquet: .*{words}"):
        assemble([], populations=[tmp_path / "p"])


def changed(table: pa.Table, column: str, value: Any) -> pa.Table:
    """The table with another value in the first row."""
    values = [value, *table[column].to_pylist()[1:]]
    column_type = None if isinstance(value, str) and column == "sequences" else table[column].type
    values = [str(item) for item in values] if column_type is None else values
    return table.set_column(table.schema.get_field_index(column), column, pa.array(values, column_type))


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="window"):
        AssemblyConfig(window_days=0)
    with pytest.raises(UsageError, match="looks"):
        AssemblyConfig(looks_per_label=-1)
    with pytest.raises(UsageError, match="seed: expected 0 or more, got -1"):
        AssemblyConfig(seed=-1)
    with pytest.raises(UsageError, match="at least one"):
        assemble([], AssemblyConfig())
