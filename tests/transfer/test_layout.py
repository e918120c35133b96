"""How a file is to be read, found out from its beginning."""

import gzip
import io
import json
import zipfile

import pytest

from storage.transfer.layout import Compression, FileFormat, FileRefused, Layout, Wishes, detect
from storage.transfer.rows import Reader


def read(data, wishes=None):
    layout = detect(io.BytesIO(data), wishes or Wishes())
    return layout, [row.fields for row in Reader(io.BytesIO(data), layout)]


ROWS = [{"id": "1", "name": "Ayşe; x"}, {"id": "2", "name": "b"}]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'id,name\n1,"Ay\xc5\x9fe; x"\n2,b\n', (",", '"', "utf-8")),
        (b'\xef\xbb\xbfid;name\r\n1;"Ay\xc5\x9fe; x"\r\n2;b\r\n', (";", '"', "utf-8")),  # Excel in Europe
        ("id\tname\n1\tAyşe; x\n2\tb\n".encode("utf-16"), ("\t", '"', "utf-16")),  # Excel: Unicode text
        (b"sep=|\r\nid|name\r\n1|Ay\xc5\x9fe; x\r\n2|b\r\n", ("|", '"', "utf-8")),
        (b"id,name\r1,Ay\xc5\x9fe; x\r2,b\r", (",", '"', "utf-8")),  # Excel for old Macs
        (b"id,name\n1,'Ay\xc5\x9fe; x'\n2,b\n", (",", "'", "utf-8")),
    ],
)
def test_dialects_of_csv(data, expected):
    layout, rows = read(data)
    assert (layout.delimiter, layout.quote, layout.encoding) == expected
    assert layout.format is FileFormat.CSV and rows[1] == ROWS[1]
    if expected[1] != "'" or "'" in data.decode():
        assert rows == ROWS


def test_an_encoding_without_a_mark():
    text = "id,name\n" + "".join(f"{n},İstanbul Çağrı Şükrü ğüşiöç\n" for n in range(50))
    layout, rows = read(text.encode("cp1254"))
    assert rows[0]["name"].startswith(
        ("İstanbul", "Ýstanbul")
    )  # one byte may be several letters: it is shown
    layout, rows = read(text.encode("cp1254"), Wishes(encoding="cp1254"))
    assert rows[0]["name"] == "İstanbul Çağrı Şükrü ğüşiöç" and layout.encoding == "cp1254"


@pytest.mark.parametrize(
    "data", [b'[{"id":"1"}]', b'{"odata.metadata":"x","value":[{"id":"1"}]}', b'{"id":"1"}\n']
)
def test_json_in_its_forms(data):
    layout, rows = read(data)
    assert rows == [{"id": "1"}]
    assert layout.format is (FileFormat.NDJSON if data.endswith(b"\n") else FileFormat.JSON)


def test_rows_longer_than_the_sample():
    rows = [{"id": number, "text": "x" * 300_000} for number in "12"]
    for data in ("".join(json.dumps(row) + "\n" for row in rows), json.dumps({"value": rows})):
        assert read(data.encode())[1] == rows


def zipped(*names):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, "id,name\n1,x\n")
    return data.getvalue()


def test_compressed():
    layout, rows = read(gzip.compress(b"id,name\n1,x\n"))
    assert (layout.compression, rows) == (Compression.GZIP, [{"id": "1", "name": "x"}])
    layout, rows = read(zipped("t.csv"))
    assert (layout.compression, layout.member, rows) == (Compression.ZIP, "t.csv", [{"id": "1", "name": "x"}])


@pytest.mark.parametrize(
    ("data", "wishes", "why"),
    [
        (b"  \n", {}, "empty"),
        (bytes(range(256)) * 9, {}, "not text"),
        (b"\x1f\x8bxx", {}, "damaged"),
        (b"PK\x03\x04xx", {}, "damaged"),
        (zipped("a.csv", "b.csv"), {}, "2 files"),
        (b"id,id\n1,2\n", {}, "two columns named id"),
        (b"a", {"encoding": "klingon"}, "klingon"),
    ],
)
def test_refuses_what_is_no_file_of_rows(data, wishes, why):
    with pytest.raises(FileRefused, match=why):
        detect(io.BytesIO(data), Wishes(**wishes))


def test_columns_without_a_header_have_numbers():
    layout, rows = read(b"1,x\n2,y\n", Wishes(has_header=False))
    assert rows == [{"column1": "1", "column2": "x"}, {"column1": "2", "column2": "y"}]
    assert Layout.load({**{name: getattr(layout, name) for name in Layout.__slots__}}) == layout
