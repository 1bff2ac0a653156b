"""Lines of text files. What cannot be read is an error with file and line: nothing is lost."""

from __future__ import annotations

import codecs
import io
import zlib
from typing import IO, Iterator, Tuple

MAX_LINE_BYTES = 1 << 20


def _byte_lines(file: IO[bytes], name: str) -> Iterator[Tuple[int, bytes]]:
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
        except (EOFError, zlib.error) as error:
            raise ValueError(f"{name}: line {number}: {error}") from None
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"{name}: line {number} has more than {MAX_LINE_BYTES:,} bytes")
        yield number, line


def lines_of(
    file: IO[bytes], name: str, encoding: str = "utf-8", errors: str = "strict"
) -> Iterator[Tuple[int, str]]:
    """The number, from 1, and the text of each line, without its end: LF, CR LF or the file's end.

    A byte order mark is left out. ValueError, with the file and the line: it is not in this
    encoding, has a NUL byte, or is longer than 1 MiB.
    """
    codec = codecs.lookup(encoding).name
    if codec.startswith(("utf-16", "utf-32")):
        try:
            file = io.BytesIO(file.read().decode(codec).encode())
        except UnicodeError as error:
            raise ValueError(f"{name} is not {encoding}: {error}") from None
        codec = "utf-8"
    for number, line in _byte_lines(file, name):
        if number == 1:
            if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise ValueError(f"{name} is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`")
            if line.startswith(codecs.BOM_UTF8):
                line = line[len(codecs.BOM_UTF8) :]
        if b"\0" in line:
            raise ValueError(f"{name}: line {number} has a NUL byte: it is not text, or is UTF-16")
        line = line[:-1] if line.endswith(b"\n") else line
        line = line[:-1] if line.endswith(b"\r") else line
        try:
            yield number, line.decode(codec, errors)
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}: line {number} is not {encoding}: {error.reason}") from None
