"""Descriptions of events and labels: a JSON object, or a table with the columns name and description."""

from __future__ import annotations

from pathlib import Path

from oscar_causal.data.folders import read_json
from oscar_causal.data.importers.cells import as_text
from oscar_causal.data.importers.long_table import open_table
from oscar_causal.data.importers.roles import require
from oscar_causal.data.rules import read_rules
from oscar_causal.errors import DataError, FolderError


def check_notes(dataset: Path | str) -> None:
    """Refuse a dataset folder whose `names.json` or `rules.json` cannot be read."""
    if (Path(dataset) / "names.json").exists():
        read_names(Path(dataset) / "names.json")
    if (Path(dataset) / "rules.json").exists():
        read_rules(Path(dataset) / "rules.json")


def read_names(path: Path | str) -> dict[str, str]:
    """Name -> description; a name given twice is an error."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        try:
            found = read_json(path)
        except FolderError as error:
            raise DataError(str(error)) from error
        for name, text in found.items():
            if not isinstance(text, str):
                raise DataError(f"{path}: {name!r}: expected a description in text, got {type(text).__name__}")
        return found
    table = open_table(path)
    columns = [require(table, "name"), require(table, "description")]
    names: dict[str, str] = {}
    for batch in table.batches(columns):
        if batch.broken:
            raise DataError(str(batch.broken[0]))
        texts = [as_text(batch.columns[column])[0].to_pylist() for column in columns]
        for row, name, text in zip(batch.rows.tolist(), *texts, strict=True):
            if name is None or name in names:
                raise DataError(f"{path}: row {row:,}, column 'name': expected a new name, got {name!r}")
            names[name] = text or ""
    return names
