"""Decompressed content of a file, read in counted blocks, so that a malicious file cannot exhaust the reader.

A megabyte of gzip can be a gigabyte of line ends without a single row, so a reader of rows cannot bound
itself. Here each block is counted, and reading can be stopped between two blocks.
"""

import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from enum import StrEnum
from typing import IO, Any, Final

from storage.domain.refusals import Reason, Refused

BLOCK: Final = 64 * 1024  # bytes between two looks
EXPANDED: Final = 64 << 20  # bytes of content from which on the ratio of compression counts
# times; rows that repeat a few values reach 200, and the most that Deflate reaches is 1,032
MOST_EXPANSION: Final = 500
# bytes without a row: a line has 16 MiB at most, and the values of an entity half a million characters
ROWLESS_BYTES: Final = 32 << 20
ROWLESS_LINES: Final = 2_000_000  # a sheet of Excel has 1,048,576 rows, which may all be blank
_DIRECTORY: Final = 4 << 20  # bytes of the list of files in a ZIP file
_METHODS: Final = frozenset(
    {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
)  # streams that yield no more than a reader asks for
_ENCRYPTED: Final = 0x1  # a flag
ZIP: Final = b"PK\x03\x04"  # the beginning of an archive that has files
_EMPTY_ZIP: Final = b"PK\x05\x06"

# files that macOS and Windows keep about a folder, and macOS about each file
_OF_FILE_MANAGERS: Final = re.compile(r"^__MACOSX/|(^|/)(\._[^/]*|\.DS_Store|Thumbs\.db|desktop\.ini)$")

# errors of reading a compressed stream that is damaged or cut off
DAMAGED: Final = (EOFError, OSError, zlib.error, zipfile.BadZipFile)


class FileRefused(Refused):
    """A file cannot be read as rows."""


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    ZIP = "zip"


class Rowless(Exception):
    """The file has no row for so long that it cannot be a file of rows."""


class Bounds:
    """Limits on the bytes read; ``check`` is called between blocks, and raises to stop reading."""

    def __init__(self, check: Callable[[], object] = lambda: None) -> None:
        self.content = 0  # bytes
        self._check = check
        self._count_rows: Callable[[], int] | None = None
        self._rows = 0
        self._rowless_bytes = self._rowless_lines = 0  # since there were so many rows

    def expect_rows(self, count: Callable[[], int]) -> None:
        """Raise Rowless when the number of rows stays the same for too long."""
        self._count_rows = count

    def count_packed(self, block: memoryview) -> None:
        """Count a block of a compressed stream, which may have no content."""
        self._check()

    def count_content(self, block: memoryview) -> None:
        self.content += len(block)
        if self._count_rows is not None:
            if self._rows != (rows := self._count_rows()):
                self._rows, self._rowless_bytes, self._rowless_lines = rows, 0, 0
            self._rowless_bytes += len(block)
            self._rowless_lines += count_lines(block)
            if self._rowless_bytes > ROWLESS_BYTES or self._rowless_lines > ROWLESS_LINES:
                raise Rowless
        self._check()


def count_lines(block: memoryview) -> int:
    text = bytes(block)
    return max(text.count(b"\n"), text.count(b"\r"))


class _Blocks(io.RawIOBase):
    """Stream that counts its blocks."""

    def __init__(self, stream: Any, count: Callable[[memoryview], None]) -> None:
        self._stream = stream
        self._count = count

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")[:BLOCK]
        block: bytes = self._stream.read1(len(view))
        view[: len(block)] = block
        if block:
            self._count(view[: len(block)])
        return len(block)

    def tell(self) -> int:
        position: int = self._stream.tell()
        return position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        position: int = self._stream.seek(offset, whence)
        return position


class _Decompressed(_Blocks):
    """Content of a ``packed`` stream; it seeks by reading, so that skipped bytes are counted, too."""

    def __init__(self, stream: Any, count: Callable[[memoryview], None], packed: IO[bytes]) -> None:
        super().__init__(stream, count)
        self._packed = packed
        self._position = 0

    def readinto(self, buffer: Any, /) -> int:
        size = super().readinto(buffer)
        self._position += size
        if self._position > max(EXPANDED, MOST_EXPANSION * self._packed.tell()):
            raise FileRefused(Reason.FILE_ROWS_EXPANDS, times=MOST_EXPANSION)
        return size

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if whence == io.SEEK_END:
            while self.read(BLOCK):
                pass
        target = offset if whence == io.SEEK_SET else self._position + offset
        if target < self._position:
            self._stream.seek(0)
            self._position = 0
        while self._position < target and self.read(min(BLOCK, target - self._position)):
            pass
        return self._position


def open_content(
    stream: IO[bytes], compression: Compression, member: str = "", bounds: Bounds | None = None
) -> io.BufferedReader:
    """Return the decompressed content from its beginning; ``member`` is a file in a ZIP archive."""
    bounds = bounds or Bounds()
    if compression is Compression.NONE:
        return io.BufferedReader(_Blocks(stream, bounds.count_content), BLOCK)
    packed = io.BufferedReader(_Blocks(stream, bounds.count_packed), BLOCK)
    is_gzip = compression is Compression.GZIP
    inner: Any = gzip.GzipFile(fileobj=packed) if is_gzip else _open_member(packed, member)
    return io.BufferedReader(_Decompressed(inner, bounds.count_content, packed), BLOCK)


def read_beginning(
    stream: IO[bytes], size: int, compression: Compression, member: str = "", bounds: Bounds | None = None
) -> bytes:
    """Return the first bytes of the content, up to any damage; raises FileRefused."""
    content, beginning = open_content(stream, compression, member, bounds), b""
    try:
        while len(beginning) < size and (block := content.read1(size - len(beginning))):
            beginning += block
    except DAMAGED:
        if not beginning:
            raise FileRefused(Reason.FILE_ROWS_DAMAGED) from None
    return beginning


def is_zip(stream: IO[bytes]) -> bool:
    """Return whether a stream begins like a ZIP archive."""
    beginning = stream.read(len(ZIP))
    stream.seek(0)
    return beginning in (ZIP, _EMPTY_ZIP)


def members(stream: IO[bytes]) -> list[str]:
    """Return the file names in a ZIP archive, except those that file managers add; raises FileRefused."""
    return [it.filename for it in infos(stream) if not _OF_FILE_MANAGERS.search(it.filename)]


def infos(stream: IO[bytes]) -> list[zipfile.ZipInfo]:
    """Return what a ZIP archive says of its files; raises FileRefused."""
    with _open_archive(stream) as archive:
        return [it for it in archive.infolist() if not it.is_dir()]


def _open_archive(stream: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(_Archive(stream))
    except NotImplementedError:  # a later version of the format
        raise FileRefused(Reason.FILE_ROWS_ZIP_METHOD) from None
    except (*DAMAGED, ValueError, OverflowError, struct.error):
        raise FileRefused(Reason.FILE_ROWS_DAMAGED) from None


def _open_member(stream: IO[bytes], name: str) -> IO[bytes]:
    archive = _open_archive(stream)
    try:
        member = archive.getinfo(name)
        if member.compress_type not in _METHODS or member.flag_bits & _ENCRYPTED:
            raise FileRefused(Reason.FILE_ROWS_ZIP_METHOD)
        return archive.open(member)
    except NotImplementedError:
        raise FileRefused(Reason.FILE_ROWS_ZIP_METHOD) from None
    except (*DAMAGED, KeyError, ValueError, OverflowError, struct.error):
        raise FileRefused(Reason.FILE_ROWS_DAMAGED) from None


class _Archive(io.BufferedIOBase):
    """Adapter of a stream to zipfile, which reads the whole central directory at once, however long it is."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._stream.seek(offset, whence)

    def read(self, size: int | None = -1, /) -> bytes:
        limit = _DIRECTORY + 1
        content = self._stream.read(limit if size is None or size < 0 else min(size, limit))
        if len(content) == limit:
            raise FileRefused(Reason.FILE_ROWS_ZIP_DIRECTORY, megabytes=_DIRECTORY >> 20)
        return content
