"""Rows: where they are, what is wrong with them, and reading that goes on where it was."""

import gzip
import io
import json

import pytest

from storage.tabular.layout import FileRefused, Wishes, detect
from storage.tabular.rows import LONGEST_LINE, Reader, RowFault


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


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "id,name\n1,Müller\n2,crème brûlée\n3,5 €\n"),
        ("cp1251", "id,name\n1,Привет\n2,мир\n3,да\n"),
        ("cp1254", 'id,name\n1,"Şahin\nAğa"\n2,İzmir\n3,x\n'),
        ("shift-jis", "id,name\n1,表示\n2,ソート\n3,能\n"),  # second bytes of characters are ASCII
        ("gb18030", "id,name\n1,客户\n2,𠀀\n3,x\n"),
        ("big5", "id,name\n1,功能\n2,許\n3,x\n"),
        ("euc-kr", "id,name\n1,고객\n2,이름\n3,x\n"),
        ("utf-16-le", "id,name\n1,Ċ\n2,ਊ\n3,x\n"),  # with bytes of line feeds in them
        ("euc-jp", "id,name\n1,表示\n2,ソート\n3,能\n"),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_goes_on_in_every_encoding(encoding, text, line_end):
    """Reading resumes at a byte position where bytes can be counted, and otherwise starts again."""
    data = text.replace("\n", line_end).encode(encoding)
    layout = detect(io.BytesIO(data), Wishes(encoding=encoding))
    every = list(Reader(io.BytesIO(data), layout))
    assert [row.fault for row in every] == [None] * 3
    assert every[0].fields["name"] == text.partition("1,")[2].partition("\n2,")[0].strip('"').replace(
        "\n", line_end
    )
    for number in range(1, 4):
        first = Reader(io.BytesIO(data), layout)
        rows = iter(first)
        for _ in range(number):
            next(rows)
        for position in (first.position, first.position._replace(offset=0)):  # as versions up to 1.0 had it
            assert list(Reader(io.BytesIO(data), layout, position)) == every[number:]
        if layout.can_seek:
            assert data[: first.position.offset].count(line_end[-1].encode()) == first.position.lines


def test_the_exact_fields_and_lines_of_csv():
    assert [(row.line, row.fields) for row in reader(CSV)] == [
        (3, {"id": "1", "name": "two\r\nlines, ş"}),
        (5, {"id": "2", "name": 'say "x"'}),
        (6, {"id": "3", "name": ""}),
    ]


def test_faulty_rows_do_not_stop_the_others():
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
    result = iter(reader(data))
    for _ in range(rows):
        next(result)
    with pytest.raises(FileRefused, match=why):
        list(result)


def test_a_document_is_read_piece_by_piece():
    entities = [{"id": n, "text": "ş\n" * 3000} for n in range(300)]  # several pieces, cut anywhere
    data = json.dumps({"odata.metadata": "x", "value": entities, "next": None}, ensure_ascii=False).encode()
    assert [row.fields for row in reader(data)] == entities


def test_a_line_without_end_is_refused():
    with pytest.raises(FileRefused, match="longer than any entity"):
        list(reader(b"id,name\n" + b"x" * (LONGEST_LINE + 1)))


def test_bad_bytes_are_named_with_other_line_ends():
    data = "id,name\r1,çğıöşü\r2,çğıöşü\r3,".encode() + b"\xff\r4,z\r"
    assert [row.fault for row in reader(data)] == [None, None, RowFault.ENCODING, None]
