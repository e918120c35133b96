"""Files that were made to cost much: what is read of them is counted, and anyone who waits can end the reading."""

import bz2
import gzip
import io
import random
import zipfile
from datetime import UTC, datetime

import pytest

from storage.domain.refusals import Reason
from storage.editing.input_context import InputContext
from storage.tabular import content as contents
from storage.tabular import file as files
from storage.tabular import layout as layouts
from storage.tabular.content import MOST_EXPANSION, FileRefused, members
from storage.tabular.file import RowFile
from storage.tabular.layout import FileFormat, Wishes
from storage.tabular.mapping import ColumnMapping

CONTEXT = InputContext(datetime(2026, 11, 28, tzinfo=UTC))
MAPPING = ColumnMapping("{PartitionKey}", "{RowKey}")
HEADER = b"PartitionKey,RowKey,name\n"
ROWS = b"".join(b"p,%d,x\n" % number for number in range(2000))
SMALLER = 8  # times, limits and files
MEBIBYTE = (1 << 20) // SMALLER
LINE_ENDS = b"\n" * MEBIBYTE
BLANK_LINES = (b" " * 1023 + b"\n") * (MEBIBYTE // 1024)
BLANK_ROW = b" " * (MEBIBYTE - 1) + b"\np,1,x\n"


class SampleBounds(files._SampleBounds):
    def __init__(self, check, most_bytes=8 * MEBIBYTE, *more, **named):
        super().__init__(check, most_bytes, *more, **named)


@pytest.fixture(autouse=True)
def smaller_limits(monkeypatch):
    """Lower the limits of reading, so that small files exceed them."""
    of_content = ("BLOCK", "EXPANDED", "ROWLESS_BYTES", "ROWLESS_LINES", "_DIRECTORY")
    for module, names in ((contents, of_content), (files, ["_CHUNK_BYTES"]), (layouts, ["SCANNED"])):
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name) // SMALLER)
    monkeypatch.setattr(files, "_SampleBounds", SampleBounds)


def packed(beginning, filling, times, level=1):
    """Return gzip of a beginning, and of a filling that is repeated."""
    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", compresslevel=level) as stream:
        stream.write(beginning)
        for _ in range(times):
            stream.write(filling)
    return data.getvalue()


def zipped(content, method=zipfile.ZIP_DEFLATED, name="t.csv"):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        archive.writestr(name, content)
    return data.getvalue()


def file_of(data, wishes=None, check=lambda: None):
    return RowFile(lambda: io.BytesIO(data), wishes or Wishes(), check=check)


def read_all(file):
    return sum(chunk.rows for chunk in file.chunks(MAPPING, CONTEXT))


class Counting:
    """Counts the looks between blocks, and ends the reading after some."""

    def __init__(self, most=None):
        self.looks, self.most = 0, most

    def __call__(self):
        self.looks += 1
        if self.most is not None and self.looks > self.most:
            raise KeyboardInterrupt


ROWLESS_FILES = {
    "line ends": packed(HEADER, LINE_ENDS, 40),
    "line ends of a Macintosh": packed(HEADER.replace(b"\n", b"\r"), b"\r" * MEBIBYTE, 40),
    "blank lines between delimiters": packed(HEADER, b"\r\n" * (MEBIBYTE // 2), 40),
    "JSON of blanks": packed(b"[", b" " * MEBIBYTE, 40),
    "JSON of blanks in an object": packed(b'{"value":', b"\n" * MEBIBYTE, 40),
    "blank NDJSON": packed(b"", LINE_ENDS, 40),
    "blank NDJSON after an object": packed(b'{"a":1', LINE_ENDS, 40),
    "ZIP": zipped(HEADER + LINE_ENDS * 40),
    "ZIP that stores": zipped(HEADER + LINE_ENDS * 40, zipfile.ZIP_STORED),
    "UTF-16": packed((HEADER.decode()).encode("utf-16"), b"\n\0" * (MEBIBYTE // 2), 40),
    "not compressed": HEADER + LINE_ENDS * 40,
}
FORMATS = {"blank NDJSON": FileFormat.NDJSON}


@pytest.mark.parametrize("name", ROWLESS_FILES)
def test_a_sample_ends_whatever_is_between_the_rows(name):
    """The looks are those of one sample and of finding out the layout: a tenth of the file at most."""
    data, looks = ROWLESS_FILES[name], Counting()
    with pytest.raises(FileRefused) as refused:
        file_of(data, Wishes(format=FORMATS.get(name)), looks).sample()
    assert refused.value.refusal.reason in (Reason.FILE_ROWS_ROWLESS, Reason.FILE_ROWS_EMPTY)
    assert looks.looks < 2 * 8 * MEBIBYTE // contents.BLOCK


def test_the_sample_has_the_rows_before_it_is_full():
    """A field that is never closed, behind rows: they are the sample, and the field is no row of it."""
    rows = file_of(packed(HEADER + b"p,1,x\np,2,y\n", b'p,3,"' + LINE_ENDS, 1)).sample().rows
    assert [(row.fields["RowKey"], row.fault) for row in rows] == [("1", None), ("2", None)]
    assert len(file_of(HEADER + ROWS).sample().rows) == 1000
    names = b"\n".join(b'{"a%d":1,"b%d":2}' % (number, number) for number in range(5000))
    assert len(file_of(names, Wishes(format=FileFormat.NDJSON)).sample().rows) == 1000
    wide = b"\n".join(
        b"{%s}" % b",".join(b'"c%d_%d":1' % (row, name) for name in range(500)) for row in range(200)
    )
    assert len(file_of(wide, Wishes(format=FileFormat.NDJSON)).sample().rows) < 100


@pytest.mark.parametrize("name", ROWLESS_FILES)
def test_reading_can_be_cancelled_before_the_first_row(name):
    data = ROWLESS_FILES[name]
    known = RowFile(lambda: io.BytesIO(data), Wishes(format=FORMATS.get(name))).layout
    looks = Counting(most=5)
    with pytest.raises(KeyboardInterrupt):
        read_all(RowFile(lambda: io.BytesIO(data), known=known, check=looks))
    assert looks.looks == 6


@pytest.mark.parametrize("name", [name for name in ROWLESS_FILES if name != "blank NDJSON after an object"])
def test_a_file_without_rows_is_refused_not_read_to_its_end(name):
    data, looks = ROWLESS_FILES[name], Counting()
    known = RowFile(lambda: io.BytesIO(data), Wishes(format=FORMATS.get(name))).layout
    with pytest.raises(FileRefused, match="There is no row for a long way after line"):
        read_all(RowFile(lambda: io.BytesIO(data), known=known, check=looks))
    block = contents.BLOCK // 8  # a text is read in smaller blocks
    assert looks.looks < 2 * contents.ROWLESS_BYTES // block


def test_rows_may_be_far_apart_up_to_a_limit():
    """A job resumes by reading again, so that no chunk may be without rows."""
    apart = packed(HEADER, b"p,1,x\n" + BLANK_LINES, 40)
    file = file_of(apart)
    first = next(file.chunks(MAPPING, CONTEXT))
    rest = file.chunks(MAPPING, CONTEXT, first.position)
    assert 0 < first.rows < 40 == first.rows + sum(chunk.rows for chunk in rest)
    chunks = file_of(packed(HEADER + ROWS, BLANK_LINES, 40)).chunks(MAPPING, CONTEXT)
    assert [next(chunks).rows for _ in range(2)] == [1000, 1000]
    with pytest.raises(FileRefused, match="after line 2001"):
        next(chunks)


def test_a_chunk_is_bounded_by_what_was_read_for_it():
    """Rows that are rejected are kept as they are, and so may take much memory."""
    long = packed(b"", b'{"PartitionKey": 1,"' + b"x" * MEBIBYTE + b"\n", 50)
    chunks = file_of(long, Wishes(format=FileFormat.NDJSON)).chunks(MAPPING, CONTEXT)
    assert [(len(it.rejects), it.rows) for it in chunks] == [(16, 16), (16, 16), (16, 16), (2, 2)]


def test_decompression_bombs_are_refused_and_repetitive_files_are_not():
    same = b"p,%d," + b"the same words in each row and on and on, " * 1400 + b"\n"
    repeating = HEADER + b"".join(same % number for number in range(1200 // SMALLER))
    data = gzip.compress(repeating, 6)
    assert len(repeating) > contents.EXPANDED
    assert 200 < len(repeating) / len(data) < MOST_EXPANSION
    assert read_all(file_of(data)) == 1200 // SMALLER
    for data in (packed(HEADER + ROWS, BLANK_ROW, 80, level=6), zipped(HEADER + ROWS + BLANK_ROW * 80)):
        with pytest.raises(FileRefused, match="more than 500 times its size"):
            read_all(file_of(data))


def test_members_without_content_cost_what_they_weigh():
    """Gzip can be many members, each of nothing, and Deflate many blocks of nothing: these are counted as well."""
    empty = gzip.compress(b"", mtime=0) * 100_000
    with pytest.raises(KeyboardInterrupt):
        file_of(empty, check=Counting(most=20))
    assert (
        file_of(gzip.compress(HEADER + ROWS) + gzip.compress(b"p,a,x\n")).layout.columns[0] == "PartitionKey"
    )
    padded = gzip.compress(HEADER + ROWS) + b"\0" * 40 * MEBIBYTE
    looks = Counting(most=60)
    with pytest.raises(KeyboardInterrupt):
        read_all(file_of(padded, check=looks))


def test_unusual_zip_files():
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(FileRefused, match="not compressed with Deflate"):
            file_of(zipped(HEADER + ROWS, method))
    data = bytearray(zipped(HEADER + ROWS))
    directory = data.rindex(b"PK\1\2")
    data[directory + 8] |= 1  # a password
    with pytest.raises(FileRefused, match="password"):
        file_of(bytes(data))
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(60_000 // SMALLER):
            archive.writestr(zipfile.ZipInfo(f"{number:040}"), b"")
    for read in (lambda: members(many), lambda: file_of(many.getvalue())):
        with pytest.raises(FileRefused, match="too many files"):
            read()
    bomb = zipped(b"x", zipfile.ZIP_BZIP2).replace(bz2.compress(b"x"), b"")
    with pytest.raises(FileRefused):
        file_of(bomb)


@pytest.mark.parametrize("make", [zipped, gzip.compress])
def test_damage_is_always_a_refusal(make):
    dice, whole = random.Random(39), make(HEADER + ROWS[:2000])
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 2, 8))):
            data[dice.randrange(len(data))] = dice.randrange(256)
        if dice.random() < 0.3:
            del data[dice.randrange(len(data)) :]
        try:
            file = file_of(bytes(data[:4]) and whole[:4] + bytes(data[4:]))
            file.sample()
            read_all(file)
        except FileRefused:
            pass
