"""What is shipped: versions agree, wheel and sdist hold what they should, notebooks were executed as they stand."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

import oscar_causal

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))
MACHINE = re.compile(r"/(tmp|root|home|work)/")


def load(name: str) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert project["version"] == oscar_causal.__version__ == cited.group(1)


def test_every_requirement_has_a_lower_bound() -> None:
    check_package = load("check_package")
    bounds = check_package.wanted_versions(lowest=True, torch=None)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(bounds) == len(project["dependencies"])
    assert check_package.wanted_versions(lowest=True, torch="9.9")["torch"] == "9.9"
    assert doctest.testmod(check_package).attempted > 0
    assert doctest.testmod(check_package).failed == 0


def test_wheel_and_sdist(tmp_path: Path) -> None:
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    check_package = load("check_package")
    wheel, sdist = check_package.build(tmp_path)
    check_package.check_contents(wheel, sdist)


def test_a_wheel_without_types_would_be_refused(tmp_path: Path) -> None:
    import tarfile
    import zipfile

    with zipfile.ZipFile(tmp_path / "w.whl", "w") as wheel:
        wheel.writestr("oscar_causal/cli.py", "")
    with tarfile.open(tmp_path / "s.tar.gz", "w:gz"):
        pass
    with pytest.raises(SystemExit, match=r"lacks oscar_causal/py\.typed"):
        load("check_package").check_contents(tmp_path / "w.whl", tmp_path / "s.tar.gz")


@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_their_sources_executed(source: Path) -> None:
    notebook = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    written = re.split(r"^# %%(?: \[markdown\])?\n", source.read_text(encoding="utf-8"), flags=re.MULTILINE)
    parts = [
        part.strip() for part in written if part.strip() and not all(x.startswith("#") for x in part.split("\n") if x)
    ]
    assert ["".join(cell["source"]).strip() for cell in code] == parts
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    assert not MACHINE.search(json.dumps([output for output in outputs if "image/png" not in output.get("data", {})]))


def test_three_notebooks_stay_small() -> None:
    assert len(NOTEBOOKS) == 3
    assert sum(path.with_suffix(".ipynb").stat().st_size for path in NOTEBOOKS) < 600_000


def test_workflows_call_what_exists() -> None:
    """Scripts, their options, extras and make's targets."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    commands = re.findall(r"^\s*- run: (.*)$", text, re.MULTILINE)
    assert len(commands) >= 5
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for command in commands:
        for name, options in re.findall(r"(?:python|bash) ([\w./]+)((?: \S+)*)", command):
            if name != "-m":
                source = (ROOT / name).read_text(encoding="utf-8")
                assert all(f'"{option}"' in source for option in re.findall(r"--[\w-]+", options)), command
        for named in re.findall(r"\.\[([\w,]+)\]", command):
            assert set(named.split(",")) <= set(extras)


def test_actions_are_pinned_by_commit() -> None:
    used = [
        line.strip()
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert used
    loose = [line for line in used if not re.fullmatch(r"- uses: [\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)]
    assert loose == []


def test_constraints_name_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []
    assert pins == sorted(set(pins), key=lambda line: line.split("==")[0])


def test_every_package_we_bring_has_a_version_that_fits_the_others() -> None:
    """From the requirements of `.[dev,docs]` on, through those of whatever is installed here in that version."""
    constraints = load("constraints")
    pins = constraints.pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    waiting = [("oscar-causal", frozenset({"dev", "docs"})), ("pgmpy", frozenset())]
    seen = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for need in required(name, extras, pins) if name != "pgmpy" else ():  # installed without what it asks for
            wanted = constraints.canonical(need.name)
            assert need.specifier.contains(pins.get(wanted, ""), prereleases=True), f"{name} asks for {need}"
            waiting.append((wanted, frozenset(need.extras)))
    assert len(seen) > 40
    assert doctest.testmod(constraints).failed == 0


def required(name: str, extras: frozenset[str], pins: dict[str, str]) -> list[Requirement]:
    """What a package asks for here; nothing of one that is not installed, or in another version."""
    try:
        told = [Requirement(text) for text in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        return []
    if name != "oscar-causal" and metadata.version(name).partition("+")[0] != pins[name]:
        return []
    wanted = extras or {""}
    return [item for item in told if item.marker is None or any(item.marker.evaluate({"extra": e}) for e in wanted)]


def test_what_a_test_lacks_is_seen_from_its_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the top of a file, of our own modules it imports, and inside single tests; not what only types need."""
    here = load("tests_here")
    monkeypatch.setattr(here, "ROOT", tmp_path)
    (tmp_path / "src" / "oscar_causal").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "src" / "oscar_causal" / "web.py").write_text("import no_such_server\n")
    types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import no_such_stubs\nimport json\n"
    files = {
        "test_a.py": f"{types}def test_x():\n    import no_such_thing.part\ndef test_y():\n    import math\n",
        "test_b.py": "from oscar_causal.web import app\n",
        "test_c.py": "import oscar_causal.web\n",
    }
    for name, text in files.items():
        (tmp_path / "tests" / name).write_text(text)
    found = {pair for name in files for pair in here.left_out(tmp_path / "tests" / name)}
    assert found == {
        ("tests/test_a.py::test_x", "no_such_thing"),
        ("tests/test_b.py", "no_such_server"),
        ("tests/test_c.py", "no_such_server"),
    }
