"""Every data row of an import has a running number over all files of its kind; this turns it back into file and row."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass
class Places:
    """Files in the order they are read; row r of a file has the number `base + r`."""

    names: list[str] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    rows: int = 0
    """Data rows met so far, bad ones included."""

    def begin(self, name: str) -> int:
        """A new file begins; returns its base."""
        self.names.append(name)
        self.bases.append(self.rows)
        return self.rows

    def reach(self, row: int) -> None:
        """The current file has at least this many rows."""
        self.rows = max(self.rows, self.bases[-1] + row)

    def find(self, ordinal: int) -> tuple[str, int]:
        """File and row of a running number.

        >>> places = Places()
        >>> places.begin("a.csv"), places.reach(10), places.begin("b.csv")
        (0, None, 10)
        >>> places.find(10), places.find(11)
        (('a.csv', 10), ('b.csv', 1))
        """
        index = bisect_right(self.bases, ordinal - 1) - 1
        return self.names[index], ordinal - self.bases[index]
