"""For the documentation site (an extension of griffe): examples in docstrings become blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^[ ]*>>> .*\n?(?:^[ ]*\S.*\n?)*)+", re.MULTILINE)


def fenced(text: str) -> str:
    """Each paragraph that begins with a prompt, between fences.

    >>> fenced("Add.\\n\\n>>> 1 + 1\\n2").splitlines()
    ['Add.', '', '```python', '>>> 1 + 1', '2', '```']
    """
    return EXAMPLE.sub(lambda found: f"```python\n{found.group().rstrip()}\n```\n", text).rstrip()


class FenceExamples(griffe.Extension):
    """Rewrites the docstring of every object that has one."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each object."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
