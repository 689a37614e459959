"""Which program was measured: the commit, for the record of a campaign."""

from __future__ import annotations

import subprocess
from pathlib import Path

_HERE = Path(__file__).parent


def commit(given: str | None = None) -> str:
    """The commit that was named, or the one checked out here, with a word on changes that are in no commit."""
    if given is not None:
        return given
    found = _git("rev-parse", "HEAD")
    if found is None:
        return "unknown"
    return f"{found} and uncommitted changes" if _git("status", "--porcelain") else found


def _git(*words: str) -> str | None:
    try:
        ended = subprocess.run(["git", *words], cwd=_HERE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ended.stdout.strip()
