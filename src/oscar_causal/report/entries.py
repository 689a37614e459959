"""JSON that another program may have written or changed, asked field by field; what is not as promised is one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from oscar_causal.errors import FolderError


@dataclass(frozen=True)
class Entry:
    """One JSON object and where it stands; a field that is null or missing is None or empty.

    >>> Entry({"rule": "A & B", "positives": 7}, "proposals.json").text("rule")
    'A & B'
    """

    fields: dict[str, Any]
    where: str

    @classmethod
    def of(cls, value: object, where: str) -> Entry:
        """An object, or one line that says what stands there instead."""
        if not isinstance(value, dict):
            raise FolderError(f"{where}: expected a JSON object, found {_shown(value)}")
        return cls(value, where)

    def text(self, name: str) -> str | None:
        """A text."""
        value = self.fields.get(name)
        return value if value is None or isinstance(value, str) else self._refuse(name, "text", value)

    def number(self, name: str) -> float | int | None:
        """A number."""
        value = self.fields.get(name)
        known = isinstance(value, int | float) and not isinstance(value, bool)
        return value if value is None or known else self._refuse(name, "a number", value)

    def flag(self, name: str) -> bool | None:
        """True or false."""
        value = self.fields.get(name)
        return value if value is None or isinstance(value, bool) else self._refuse(name, "true or false", value)

    def named(self, name: str) -> str:
        """A text that must be there."""
        value = self.text(name)
        return self._refuse(name, "text", value) if value is None else value

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        found = self._list(name)
        return [item if isinstance(item, str) else self._refuse(name, "a list of texts", item) for item in found]

    def entry(self, name: str) -> Entry | None:
        """An object inside this one."""
        value = self.fields.get(name)
        return None if value is None else Entry.of(value, f"{self.where}: {name}")

    def entries(self, name: str) -> list[Entry]:
        """A list of objects."""
        return [Entry.of(item, f"{self.where}: {name}") for item in self._list(name)]

    def items(self) -> Iterator[tuple[str, Entry]]:
        """The objects this one is made of, by name."""
        return ((name, Entry.of(value, f"{self.where}: {name}")) for name, value in self.fields.items())

    def _list(self, name: str) -> list[Any]:
        value = self.fields.get(name)
        return [] if value is None else value if isinstance(value, list) else self._refuse(name, "a list", value)

    def _refuse(self, name: str, expected: str, value: object) -> Any:
        raise FolderError(f"{self.where}: {name}: expected {expected}, found {_shown(value)}")


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:39]}…"
