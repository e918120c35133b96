"""Rows: where they are, what is wrong with them, and reading that goes on where it was."""

import gzip
import io
import json

import pytest

from storage.transfer.layout import FileRefused, detect
from storage.transfer.rows import LONGEST_LINE, Reader, RowFault


def reader(data, start=None):
    layout = detect(io.BytesIO(data))
    return Reader(io.BytesIO(data), layout) if start is None else Reader(io.BytesIO(data), layout, start)


CSV = b'\xef\xbb\xbfid,name\r\n1,"two\r\nlines, \xc5\x9f"\r\n\r\n2,"say ""x"""\r\n3,\r\n'
NDJSON = b'{"id":1,"a":"\\ud800"}\n\n{"id":2,"a":-0.0}\n{"id":3}\n'
ARRAY = b'[\n {"id":1},\n {"id":12345678901234567890},\n {"id":1.5}\n]\n'


@pytest.mark.parametrize(
    "data", [CSV, gzip.compress(CSV, mtime=0), CSV[3:].decode().encode("utf-16"), NDJSON, ARRAY]
)
def test_goes_on_from_every_row(data):
    every = list(reader(data))
    assert len(every) == 3
    for number in range(1, 3):
        first = reader(data)
        rows = iter(first)
        for _ in range(number):
            next(rows)
        assert list(reader(data, first.position)) == every[number:]


def test_the_exact_fields_and_lines_of_csv():
    assert [(row.line, row.fields) for row in reader(CSV)] == [
        (3, {"id": "1", "name": "two\r\nlines, ş"}),
        (5, {"id": "2", "name": 'say "x"'}),
        (6, {"id": "3", "name": ""}),
    ]


def test_what_is_wrong_with_a_row_does_not_stop_the_others():
    data = 'id,name\n1,çğıöşüçğıöşü\n2,"a"b\n3,x,y\n4,'.encode() + b"\xff\n5,z\n"
    assert [(row.line, row.fault) for row in reader(data)] == [
        (2, None), (3, RowFault.BAD_CSV), (4, RowFault.TOO_MANY_FIELDS), (5, RowFault.ENCODING), (6, None),
    ]  # fmt: skip
    data = '{"id":"çğıöşüçğıöşü"}\n{"id":\n[1]\n{"id":"'.encode() + b'\xff"}\n{"id":2}\n'
    assert [row.fault for row in reader(data)] == [
        None, RowFault.BAD_JSON, RowFault.NO_OBJECT, RowFault.ENCODING, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "rows", "why"),
    [
        (b'[{"id":1},{"id":2}', 2, "line 1"),
        (b'[{"id":1}\n{"id":2}]', 1, "line 2"),
        (b'[{"id":1},\n{"id":]', 1, "line 2"),
        (b'{"value":[{"id":1}]} x', 1, "line 1"),
        (
            gzip.compress(b"id\n" + b"".join(b"%d\n" % n for n in range(90_000)))[:-20],
            1,
            "incomplete or damaged",
        ),
    ],
)
def test_a_file_that_is_cut_off_says_so_after_its_rows(data, rows, why):
    found = iter(reader(data))
    for _ in range(rows):
        next(found)
    with pytest.raises(FileRefused, match=why):
        list(found)


def test_a_document_is_read_piece_by_piece():
    entities = [{"id": n, "text": "ş\n" * 3000} for n in range(300)]  # several pieces, cut anywhere
    data = json.dumps({"odata.metadata": "x", "value": entities, "next": None}, ensure_ascii=False).encode()
    assert [row.fields for row in reader(data)] == entities


def test_a_line_without_end_is_refused():
    with pytest.raises(FileRefused, match="longer than any entity"):
        list(reader(b"id,name\n" + b"x" * (LONGEST_LINE + 1)))
