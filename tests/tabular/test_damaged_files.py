"""Files that were damaged in any way: what reads them raises a sentence, or names the rows."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.editing.input_context import InputContext
from storage.tabular.encodings import ENCODINGS
from storage.tabular.file import RowFile
from storage.tabular.layout import MOST_COLUMNS, FileRefused, Wishes
from storage.tabular.mapping import ColumnMapping
from tests.examples import of_usual

CONTEXT = InputContext(datetime(2026, 11, 28, tzinfo=UTC))
MAPPING = ColumnMapping("{PartitionKey}", "{RowKey}")
CSV = "PartitionKey,RowKey,name,n\r\n" + "".join(f'p,{number},"Ayşe, é",{number}\r\n' for number in range(40))
ROWS = [{"PartitionKey": "p", "RowKey": str(number), "name": "Ayşe é", "n": number} for number in range(40)]


def zipped(content, method=zipfile.ZIP_DEFLATED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        archive.writestr("t.csv", content)
    return data.getvalue()


def parquet():
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    data = io.BytesIO()
    arrow.parquet.write_table(arrow.Table.from_pylist(ROWS), data)
    return data.getvalue()


def with_bytes(content, place, value):
    """ZIP content that says to be compressed by another method, or encrypted."""
    data = bytearray(content)
    for signature, offset in ((b"PK\x03\x04", place), (b"PK\x01\x02", place + 2)):
        at = data.find(signature) + offset
        data[at : at + 2] = value.to_bytes(2, "little")
    return bytes(data)


FILES = {
    "csv": CSV.encode(),
    "utf-16": CSV.encode("utf-16"),
    "windows-1254": CSV.encode("cp1254"),
    "mac": CSV.replace("\r\n", "\r").encode(),
    "ndjson": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode(),
    "json": json.dumps({"odata.metadata": "x", "value": ROWS}, ensure_ascii=False).encode(),
    "gzip": gzip.compress(CSV.encode(), mtime=0),
    "zip": zipped(CSV),
    "stored": zipped(CSV, zipfile.ZIP_STORED),
    "parquet": None,
    "zipped parquet": None,
}


def content_of(name):
    return {"parquet": parquet, "zipped parquet": lambda: zipped(parquet())}.get(name, lambda: FILES[name])()


def read(data, wishes=None):
    """Read all of a file as an import does; returns whether that was possible."""
    try:
        file = RowFile(lambda: io.BytesIO(data), wishes or Wishes())
        file.propose(CONTEXT)
        for chunk in file.chunks(MAPPING, CONTEXT):
            assert len(chunk.entities) + len(chunk.rejects) == chunk.rows
    except FileRefused:
        return False
    return True


@pytest.mark.parametrize("name", FILES)
def test_undamaged_files_are_read(name):
    assert read(content_of(name))


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=of_usual(30))
@given(data=st.data())
def test_damaged_files_are_refused_with_a_sentence_or_read(name, data):
    content = bytearray(content_of(name))
    places = st.integers(0, len(content) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=8)):
        content[place] = value
    start, end = data.draw(places), data.draw(places)
    match data.draw(st.sampled_from(["keep", "cut", "drop", "repeat"])):
        case "cut":
            del content[end:]
        case "drop":
            del content[start : start + 40]
        case "repeat":
            content[start:start] = content[end : end + 40]
    read(bytes(content))


@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"\x1f\x8b\x08", b"PK\x03\x04", b"PAR1", b"[", b"{", b"\xff\xfe"]),
)
def test_any_bytes_are_refused_with_a_sentence_or_read(content, beginning):
    read(beginning + content)


@given(st.binary(min_size=1, max_size=200), st.sampled_from(list(ENCODINGS)))
def test_any_bytes_in_a_chosen_encoding(content, encoding):
    read(content, Wishes(encoding=encoding))


@pytest.mark.parametrize(
    "content",
    [
        with_bytes(zipped(CSV), 8, 12),  # as bzip2
        with_bytes(zipped(CSV), 8, 14),  # as LZMA
        with_bytes(zipped(CSV), 8, 9),  # as Deflate64
        with_bytes(zipped(CSV), 8, 99),
        with_bytes(zipped(CSV), 6, 1),  # encrypted
        zipped(CSV, zipfile.ZIP_BZIP2),
        zipped(CSV, zipfile.ZIP_LZMA),
        bz2.compress(CSV.encode()),
        lzma.compress(CSV.encode()),
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'[{"a":' + b"1" * 5000 + b"}]",
    ],
)
def test_other_compressions_and_depths_are_refused_or_named(content):
    read(content)


def test_a_file_of_parquet_with_too_many_columns_is_refused():
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    data = io.BytesIO()
    names = [f"c{number}" for number in range(MOST_COLUMNS + 1)]
    arrow.parquet.write_table(arrow.Table.from_pylist([dict.fromkeys(names, 1)]), data)
    with pytest.raises(FileRefused, match="At most 4000 can be read"):
        RowFile(lambda: io.BytesIO(data.getvalue())).sample()


def test_text_of_parquet_that_is_not_utf8_is_refused():
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    data = io.BytesIO()
    arrow.parquet.write_table(
        arrow.Table.from_pylist(ROWS), data, compression="none", use_dictionary=False, write_statistics=False
    )
    damaged = data.getvalue().replace("Ayşe".encode(), b"Ay\xcd\xcde")
    assert damaged != data.getvalue() and not read(damaged)
