"""Executes docs/notebooks/*.py (percent format) into the notebooks beside them: `python scripts/make_notebooks.py`.

With `--check FOLDER` they are written there instead, so that CI shows they still run without touching the repository.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

SOURCES = Path(__file__).resolve().parents[1] / "docs" / "notebooks"


def execute(source: Path, out: Path) -> float:
    """Write the executed notebook of one source; returns the seconds it took."""
    begun = time.monotonic()
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # tqdm's, of the kernel: no widgets here
    notebook = jupytext.read(source)
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False).execute()
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # stable from one execution to the next
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                del output.data["text/plain"]  # what no reader of the page sees
    out.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, out / f"{source.stem}.ipynb")
    return time.monotonic() - begun


def main() -> None:
    """Execute every source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", type=Path, default=SOURCES, help="write here instead of beside the sources")
    parser.add_argument("names", nargs="*", help="only these")
    given = parser.parse_args()
    for source in sorted(SOURCES.glob("*.py")):
        if not given.names or source.stem in given.names:
            print(f"{source.stem}: {execute(source, given.check):.0f} s")


if __name__ == "__main__":
    main()
