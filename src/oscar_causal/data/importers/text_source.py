"""The bytes of a text table, unpacked and in UTF-8, whatever the file holds; what is no such text is one clear line."""

from __future__ import annotations

import codecs
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from oscar_causal.errors import DataError

BLOCK_BYTES = 8 << 20
"""Read at a time; also the longest row a text table may have."""

READ_AHEAD_PAUSE = 0.05
"""Seconds for a thread to notice that there is nothing more to read."""

_ESCAPE = "\ufdd0"
_ESCAPED = re.compile(_ESCAPE.encode() + b"(" + _ESCAPE.encode() + b"|[0-9a-f]{2})")

_FOREIGN = (
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a ZIP archive (a spreadsheet?)"),
    (b"BZh", "a bzip2 file"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (b"\xfd7zXZ", "an XZ file"),
)


def open_bytes(path: Path) -> pa.NativeFile:
    """The file for reading; a missing or unreadable one is a DataError that names it."""
    try:
        if path.is_dir():
            raise DataError(f"{path}: expected a file, got a folder")
        return pa.OSFile(str(path))
    except (OSError, ValueError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise DataError(f"{path}: cannot be read: {reason}") from error


def first_bytes(path: Path, count: int = 8) -> bytes:
    """The first bytes of a file, as they are on disk."""
    with open_bytes(path) as file:
        return bytes(file.read(count))


def restored(data: bytes) -> bytes:
    """The bytes of the file again: what `TextSource` escaped is undone."""
    return _ESCAPED.sub(lambda found: _byte(found[1]), data)


def _byte(code: bytes) -> bytes:
    return code if code == _ESCAPE.encode() else bytes([int(code, 16)])


class TextSource:
    """A readable stream of UTF-8 bytes that ends with a line break and begins with the first line that is not blank.

    Gzip is recognised by its first bytes. Bytes that are no UTF-8 are escaped, so that one bad cell does not keep the
    file from being cut into cells (`escaped`: some were; `restored` undoes it). Quotation marks are counted on the way
    (`quotes`), so that the reader can tell a file whose last one is never closed.
    """

    def __init__(self, path: Path, encoding: str = "utf-8") -> None:
        self._path = path
        self._raw = open_bytes(path)
        packed = first_bytes(path, 2) == b"\x1f\x8b"
        self._stream = pa.CompressedInputStream(self._raw, "gzip") if packed else self._raw
        self._plain = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
        codec, errors = ("utf-8", "surrogateescape") if self._plain else (encoding, "strict")
        self._decoder = codecs.getincrementaldecoder(codec)(errors)
        self._ready = b""
        self._ahead: bytes | None = None
        self._began, self._ended = False, False
        self.quotes, self.escaped = 0, False
        self.closed = self._stopped = False
        self._turn = threading.Lock()

    def tell_raw(self) -> int:
        """How many bytes of the file on disk have been read."""
        return 0 if self.closed else int(self._raw.tell())

    def read(self, size: int = BLOCK_BYTES) -> bytes:
        """At most `size` bytes (two or more); empty at the end and nowhere else.

        Carriage return and line feed are never parted: Arrow would drop a line feed that begins a block, also where
        both stand inside quotes.
        """
        with self._turn:
            return b"" if self._stopped else self._read(size)

    def _read(self, size: int) -> bytes:
        while not self._ended and self._ready in (b"", b"\r"):
            self._ready += self._pull()
        data = self._ready[:size]
        data = data[:-1] if data.endswith(b"\r") and len(data) > 1 else data
        self._ready = self._ready[len(data) :]
        self.quotes += data.count(b'"')
        return data

    def stop(self) -> None:
        """Let Arrow's thread, which reads ahead, come to the end now: abandoned while reading it hangs at exit."""
        with self._turn:
            self._stopped = True
        time.sleep(READ_AHEAD_PAUSE if not self._ended else 0)

    def lines(self) -> Iterator[bytes]:
        """Line by line, without line breaks and without blank lines."""
        rest = b""
        while block := self.read():
            *whole, rest = (rest + block).split(b"\n")
            if len(rest) > BLOCK_BYTES:
                raise DataError(f"{self._path}: expected lines of at most {BLOCK_BYTES >> 20} MB, got a longer one")
            yield from (line for line in whole if line.strip())
        if rest.strip():
            yield rest

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._stream.close()
            self._raw.close()
            self.closed = True

    def __enter__(self) -> TextSource:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def readable(self) -> bool:
        """Streams that Arrow reads answer this."""
        return True

    def _pull(self) -> bytes:
        data = self._block() if self._ahead is None else self._ahead
        self._ahead = self._block() if data else b""
        self._ended = not self._ahead
        data = self._begin(data) if self._plain else data
        data = self._recoded(data)
        data = data if self._plain else self._begin(data)
        return data + b"\n" if self._ended and data and data[-1:] != b"\n" else data

    def _block(self) -> bytes:
        try:
            return bytes(self._stream.read(BLOCK_BYTES))
        except (OSError, ValueError) as error:
            raise DataError(f"{self._path}: expected a whole file, cannot read or unpack it: {error}") from error

    def _recoded(self, data: bytes) -> bytes:
        try:
            text = self._decoder.decode(data, final=self._ended)
            if _ESCAPE in text:
                self.escaped, text = True, text.replace(_ESCAPE, _ESCAPE + _ESCAPE)
            return text.encode("utf-8")
        except UnicodeEncodeError:  # the bytes that are no UTF-8, as surrogates
            self.escaped = True
            return re.sub("[\udc80-\udcff]", lambda byte: f"{_ESCAPE}{ord(byte[0]) - 0xDC00:02x}", text).encode("utf-8")
        except UnicodeError as error:
            raise DataError(f"{self._path}: expected text in the encoding that --encoding says: {error}") from error

    def _begin(self, data: bytes) -> bytes:
        """Check and strip the beginning of the file, once."""
        if self._began:
            return data
        for magic, what in _FOREIGN:
            if data.startswith(magic):
                hint = "; say --encoding utf-16" if "UTF-16" in what else ""
                raise DataError(f"{self._path}: expected UTF-8 text, got {what}{hint}")
        data = data.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
        if b"\0" in data[:4096].split(b"\n")[0]:
            raise DataError(f"{self._path}: expected text, got NUL bytes in its first line: UTF-16, or a binary file?")
        self._began = bool(data)
        return data
