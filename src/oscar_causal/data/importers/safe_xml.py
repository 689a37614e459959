"""XML read piece by piece with the standard library's expat, without anything a file could abuse.

A document type declaration is refused, and with it all entities but the five of XML itself: nothing is expanded,
nothing outside the file is opened. A tag or comment longer than 8 MB is refused: expat reads it again with every piece.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from oscar_causal.data.importers.text_source import BLOCK_BYTES, first_bytes, open_bytes
from oscar_causal.errors import DataError

PIECE_BYTES = 1 << 20
Start = Callable[[str, dict[str, str]], object]


def parse_xml(
    path: Path, start: Start, end: Callable[[str], object], text: Callable[[str], None] | None = None
) -> Iterator[int]:
    """Call `start(tag, attributes)`, `end(tag)`, `text(data)` along the file; yields the bytes read after each piece.

    Tags come without their namespace. A file that is no whole XML document is a DataError that names its line.
    """
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, attributes: start(_local(tag), attributes)
    parser.EndElementHandler = lambda tag: end(_local(tag))
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = _refuse
    parser.buffer_text = True
    packed = first_bytes(path, 2) == b"\x1f\x8b"
    with open_bytes(path) as raw:
        stream: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        try:
            fed = 0
            while piece := stream.read(PIECE_BYTES):
                parser.Parse(piece, False)
                fed += len(piece)
                if fed - parser.CurrentByteIndex > BLOCK_BYTES:
                    limit = f"tags and comments of at most {BLOCK_BYTES >> 20} MB"
                    raise DataError(f"{path}: line {parser.CurrentLineNumber}: expected {limit}, got a longer one")
                yield int(raw.tell())
            parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: an encoding nobody knows
            raise DataError(f"{path}: expected a whole XML document: {error}") from error
        except _Doctype as error:
            where = f"line {parser.CurrentLineNumber}"
            raise DataError(f"{path}: {where}: expected XML without a document type (DTD), got one") from error
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path}: expected a whole gzip file: {error}") from error


class _Doctype(Exception):
    pass


def _refuse(*_: Any) -> None:
    raise _Doctype


def _local(tag: str) -> str:
    return tag.rsplit(":", 1)[-1]
