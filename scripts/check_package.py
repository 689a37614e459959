"""Builds wheel and sdist, installs the wheel into an empty environment and uses it there.

What a user gets from the package, and nothing of this folder, must be enough for `oscar doctor` and a small demo.
`--lowest` installs the lower bounds of pyproject.toml instead of the newest versions; `--tests` also runs there what
`tests_here.py` can.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = (
    "oscar_causal/py.typed",
    "oscar_causal/cli.py",
    "oscar_causal/report/bundle/",
    "oscar_causal/score/bench/paper.json",
)
FOR_TESTS = ("pytest>=8.2", "pytest-timeout>=2.3", "hypothesis>=6.100")
UNWANTED = re.compile(r"(^|/)(node_modules|\.venv|__pycache__|scratch|\.git)(/|$)")


def lower_bounds(requirements: list[str]) -> dict[str, str]:
    """The lowest version each requirement allows, by name as pip wants it.

    >>> lower_bounds(["numpy>=1.26", "ray[data]>=2.40"])
    {'numpy': '1.26', 'ray': '2.40'}
    """
    found = [re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)(?:,<[\w.]+)?", text) for text in requirements]
    if None in found:
        raise SystemExit(f"pyproject.toml: expected NAME>=VERSION everywhere, got {requirements[found.index(None)]}")
    return {match.group(1): match.group(2) for match in found if match}


def build(out: Path) -> tuple[Path, Path]:
    """Wheel and sdist of this folder."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT))
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def check_contents(wheel: Path, sdist: Path) -> None:
    """What must be inside is, and what must not be is not."""
    in_wheel = zipfile.ZipFile(wheel).namelist()
    with tarfile.open(sdist) as archive:
        in_sdist = [name.partition("/")[2] for name in archive.getnames()]
    for needed in NEEDED:
        if not any(name.startswith(needed) for name in in_wheel):
            raise SystemExit(f"{wheel.name}: lacks {needed}")
    foreign = [name for name in in_wheel if not name.startswith(("oscar_causal/", "oscar_causal-"))]
    unwanted = [name for name in [*in_wheel, *in_sdist] if UNWANTED.search(name)]
    if foreign or unwanted:
        raise SystemExit(f"the package holds what it must not: {[*foreign, *unwanted][0]}")
    size, source_size = (path.stat().st_size / 1e6 for path in (wheel, sdist))
    print(f"{wheel.name}: {len(in_wheel)} files, {size:.2f} MB; sdist {source_size:.2f} MB")


def install(wheel: Path, place: Path, versions: dict[str, str]) -> Path:
    """An empty environment with the wheel in it; returns its folder of programs."""
    venv.create(place, with_pip=True)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    limits = place / "versions.txt"
    limits.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()), encoding="utf-8")
    run(*pip, "-c", str(limits), "torch")
    run(*pip, "-c", str(limits), str(wheel))
    return programs


def wanted_versions(*, lowest: bool, torch: str | None) -> dict[str, str]:
    """Versions to install: those of constraints.txt, or the lower bounds; `torch` has the last word about its own."""
    if lowest:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        versions = lower_bounds(project["dependencies"])
    else:
        text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
        versions = dict(re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE))
    return versions | ({"torch": torch} if torch else {})


def use(programs: Path, place: Path, *, quick: bool) -> None:
    """Help, doctor, types and a demo, outside this folder."""
    command = str(programs / "oscar")
    run(command, "--help", cwd=place)
    print(run(command, "doctor", cwd=place))
    run(
        str(programs / "python"),
        "-c",
        "import oscar_causal; [getattr(oscar_causal, n) for n in oscar_causal.__all__]",
        cwd=place,
    )
    size = ["--sequences", "400", "--steps", "3", "--explain", "4", "--contexts", "32"] if quick else []
    figures = json.loads(run(command, "demo", "--out", "demo", "--json", *size, cwd=place))
    if not (place / "demo" / "page.html").is_file() or figures["explained"] < 1:
        raise SystemExit("oscar demo: wrote no page or explained nothing")
    print(f"oscar demo: {figures['explained']} sequences explained in {figures['seconds']} s")


def test(programs: Path, place: Path) -> None:
    """The tests, against what is installed."""
    run(str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *FOR_TESTS)
    script, out = str(ROOT / "scripts" / "tests_here.py"), str(place / "tests.json")
    print(run(str(programs / "python"), script, "--out", out, "--seconds", "2400"))


def run(*words: str, cwd: Path | None = None) -> str:
    """Run a program; what it printed. It sees nothing of this folder."""
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ended = subprocess.run(words, cwd=cwd, env=hidden, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(
            f"{' '.join(words)} ended with {ended.returncode}:\n{ended.stdout[-2000:]}{ended.stderr[-4000:]}"
        )
    return ended.stdout


def main() -> None:
    """Build, look inside, install, use."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lowest", action="store_true", help="lower bounds of all requirements")
    parser.add_argument("--torch", help="this version of torch, whatever else is said")
    parser.add_argument("--full-demo", action="store_true", help="the demo as users run it (minutes)")
    parser.add_argument("--tests", action="store_true", help="also the tests, as far as they need no other package")
    parser.add_argument("--build-only", action="store_true", help="build and look inside, install nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheel, sdist = build(place / "dist")
        check_contents(wheel, sdist)
        if not given.build_only:
            versions = wanted_versions(lowest=given.lowest, torch=given.torch)
            programs = install(wheel, place / "environment", versions)
            use(programs, place, quick=not given.full_demo)
            if given.tests:
                test(programs, place)


if __name__ == "__main__":
    main()
