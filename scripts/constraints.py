"""Write constraints.txt: one version of every package that tests, demo and documentation bring (`make constraints`).

    python scripts/constraints.py python3.11 python3.12

Each named Python asks pip which packages it would install into an empty environment (nothing is installed). Of a
package that they answer with several versions the oldest is kept, and each Python is asked again whether it can live
with all of them. No line says which build it is: `torch==2.13.0` fits one for the CPU and one for CUDA.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "constraints.txt"
HEAD = """\
# The versions that the tests run on, of every package that `.[dev]` and `.[docs]` bring (`make constraints`).
# torch stays until it is changed here by hand: an open range would let pip take gigabytes of newer CUDA packages.
"""
OWN = {"oscar-causal", "pip"}


def main() -> None:
    """Ask every Python, merge, ask again, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pythons", nargs="+", help="one of each version that must be able to install them")
    pythons = parser.parse_args().pythons
    kept = {name: version for name, version in pins(TARGET.read_text(encoding="utf-8")).items() if name == "torch"}
    merged = oldest([resolve(python, kept) for python in pythons])
    for python in pythons:
        missing = resolve(python, merged).keys() - merged.keys()
        if missing:
            raise SystemExit(f"{python}: needs further packages with these versions: {', '.join(sorted(missing))}")
    TARGET.write_text(HEAD + "".join(f"{name}=={merged[name]}\n" for name in sorted(merged)), encoding="utf-8")
    print(f"{TARGET.name}: {len(merged)} packages")


def pins(text: str) -> dict[str, str]:
    """Package -> version of every line.

    >>> pins("# why\\nPyYAML==6.0.3\\ntorch==2.13.0\\n")
    {'pyyaml': '6.0.3', 'torch': '2.13.0'}
    """
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return {canonical(name): version for name, version in (line.split("==") for line in lines if line)}


def canonical(name: str) -> str:
    """A package's name as indexes spell it.

    >>> canonical("ast_serialize")
    'ast-serialize'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def oldest(answers: list[dict[str, str]]) -> dict[str, str]:
    """Every package of any answer, each in the oldest of its versions.

    >>> oldest([{"a": "1.10", "b": "2"}, {"a": "1.9"}])
    {'a': '1.9', 'b': '2'}
    """
    names = dict.fromkeys(name for answer in answers for name in answer)
    return {name: min((answer[name] for answer in answers if name in answer), key=Version) for name in names}


def resolve(python: str, limits: dict[str, str]) -> dict[str, str]:
    """What pip would install into an empty environment of this Python under these limits."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "limits.txt"
        file.write_text("".join(f"{name}=={version}\n" for name, version in limits.items()), encoding="utf-8")
        wanted = _report(python, file, f"{ROOT}[dev,docs]") + _report(python, file, "--no-deps", "pgmpy")
    found = {canonical(item["metadata"]["name"]): item["metadata"]["version"].partition("+")[0] for item in wanted}
    return {name: version for name, version in found.items() if name not in OWN}


def _report(python: str, limits: Path, *words: str) -> list[dict[str, Any]]:
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run", "--ignore-installed"]
    ended = subprocess.run([*pip, "--report", "-", "-c", str(limits), *words], stdout=subprocess.PIPE, text=True)
    if ended.returncode:
        raise SystemExit(f"{python}: pip cannot resolve {' '.join(words)} with the versions above")
    installed: list[dict[str, Any]] = json.loads(ended.stdout)["install"]
    return installed


if __name__ == "__main__":
    main()
