"""Two commands that write the same `--out` with the same process id, as in two containers on one disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_equal_process_ids(faults: Any, tmp_path: Path) -> None:
    if not faults.can_unshare():
        pytest.skip("new process id namespaces are not allowed here")
    tables = faults.make_tables(tmp_path)
    found = faults.two_imports(tables, tmp_path / "out", apart=0.05)
    assert sorted(found["codes"]) == [0, 2], found
    assert found["identical"], found
    assert {path.name for path in tmp_path.iterdir()} == {"out", *(path.name for path in tables)}
