"""A folder of the package imports only folders before it; the data part never touches torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import oscar_causal

ROOT = Path(oscar_causal.__file__).parent
LAYERS = (
    "errors", "signals", "data", "classical", "density", "discovery", "graph", "report", "score", "serve", "verbs",
    "cli", "__main__",
)  # fmt: skip
JUDGING = ("reading", "folder")
"""Modules of `discovery/classical` that make verdicts of boundaries; the others need data alone (`classical`)."""
CORE = {
    "torch", "numpy", "pyarrow", "scipy", "safetensors", "huggingface_hub", "accelerate", "networkx", "sympy", "typer",
    "rich", "matplotlib", "jinja2", "oscar_causal",
}  # fmt: skip
"""What may be imported without an extra."""


def imports(file: Path) -> set[str]:
    """Every module a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide the layer"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def layer(name: str) -> str:
    """The layer of a module of this package; the package itself counts as the first."""
    parts = name.split(".")
    if parts[1:3] == ["discovery", "classical"] and len(parts) > 3 and parts[3] not in JUDGING:
        return "classical"
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else LAYERS[0]


FILES = sorted(file for file in ROOT.rglob("*.py") if file.parent != ROOT or file.stem != "__init__")
"""All but the package itself, which names its public parts by text."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_only_layers_before(file: Path) -> None:
    own = layer(".".join(("oscar_causal", *file.relative_to(ROOT).with_suffix("").parts)))
    assert own in LAYERS, f"{own}: a new folder belongs into LAYERS, in the order of the data"
    for name in imports(file):
        if name.split(".")[0] == "oscar_causal":
            assert LAYERS.index(layer(name)) <= LAYERS.index(own), f"{file}: imports {name}"


def test_the_core_needs_no_extras() -> None:
    for file in FILES:
        if file.relative_to(ROOT).parts[0] in ("data", "density", "discovery", "graph", "score"):
            roots = {name.split(".")[0] for name in imports(file)} - CORE - set(sys.stdlib_module_names)
            assert roots <= _optional_here(file), f"{file}: imports {roots}"


def _optional_here(file: Path) -> set[str]:
    """Files whose very purpose is an extra, or a GPU: where torch has CUDA, Triton comes with it."""
    kernels = {"kernels.py": {"triton"}, "law_kernels.py": {"triton"}}
    return {"adapters.py": {"transformers"}, "distributed.py": {"ray"}, **kernels}.get(file.name, set())


def test_data_is_written_without_torch() -> None:
    for file in FILES:
        if file.relative_to(ROOT).parts[0] == "data":
            assert not any(name.split(".")[0] == "torch" for name in imports(file)), file


def test_importing_data_loads_no_torch() -> None:
    modules = [
        ".".join(["oscar_causal", *file.relative_to(ROOT).with_suffix("").parts])
        for file in FILES
        if file.relative_to(ROOT).parts[0] == "data" and file.name != "__init__.py"
    ]
    script = f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
    script += "print(*sorted({'torch', 'sympy', 'matplotlib', 'transformers'} & set(sys.modules)))"
    command = [sys.executable, "-W", "error", "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "", "")


def test_no_vague_file_names() -> None:
    vague = {"utils", "common", "helpers", "core", "base", "manager", "runner"}
    assert not [file for file in FILES if file.stem in vague]
