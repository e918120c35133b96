"""The layout of a file, detected from its beginning."""

import gzip
import io
import json
import zipfile
from dataclasses import asdict

import pytest

from storage.tabular import layout as layouts
from storage.tabular.content import members
from storage.tabular.layout import (
    MOST_COLUMNS,
    SAMPLE,
    Compression,
    FileFormat,
    FileRefused,
    Layout,
    Wishes,
    detect,
)
from storage.tabular.rows import Reader, RowFault


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


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (b"'id','name'\n1,'Ann'\n", ["1", "Ann"]),  # a name of the header
        (b"id,name\n1,'a,b'\n2,c\n3,'d'\n", ["1", "a,b"]),  # the delimiter
        (b"id,name\n1,'Ann'\n2,'Bob'\n", ["1", "'Ann'"]),
        (b"PartitionKey,RowKey,Note\n1,'a','b; c'\n", ["1", "'a'", "'b; c'"]),
        (b"id,name\n1,'tis so\n2,c\n", ["1", "'tis so"]),
        (b"id,name,more\n1,'tis a, b\n2,c,d\n3,e,f\n", ["1", "'tis a", " b"]),
        (b"note\n'tis so\nx\ny\n", ["'tis so"]),
        (b"id,note\n2,'tis so\n1,a,b\n3,c\n4,d\n", ["2", "'tis so"]),
    ],
)
def test_apostrophes_are_quotation_marks_where_they_must_be(data, fields):
    assert list(read(data)[1][0].values()) == fields


def test_lines_of_old_macs_may_have_line_feeds_in_quotation_marks():
    layout, rows = read(b'id,name\r1,"two\nlines"\r2,b\r')
    assert (layout.line_end, [row["name"] for row in rows]) == ("\r", ["two\nlines", "b"])
    for ends in ("\r\n", "\r\r\n"):  # the latter of programs that convert line ends twice
        assert read(f"id,name{ends}1,a{ends}2,b{ends}".encode())[0].line_end == "\n"


@pytest.mark.parametrize(
    "name",
    [
        "Selected.System.Management.Automation.PSCustomObject",
        "System.Collections.Generic.Dictionary`2[[System.String, mscorlib],[System.Int32, mscorlib]]",
    ],
)
def test_the_type_of_objects_that_powershell_writes_is_no_header(name):
    text = f'#TYPE {name}\r\n"id","name"\r\n"1","Ay\u015fe; x"\r\n"2","b"\r\n'
    for data in (text.encode(), text.encode("utf-16")):
        layout, rows = read(data)
        assert (layout.has_separator_line, layout.columns, rows) == (True, ("id", "name"), ROWS)
    assert read(b"#TYPE,name\n1,x\n")[0].columns == ("#TYPE", "name")


def test_an_encoding_without_a_mark():
    text = "id,name\n" + "".join(f"{n},İstanbul Çağrı Şükrü ğüşiöç\n" for n in range(50))
    for wishes in (Wishes(), Wishes(encoding="cp1254")):
        layout, rows = read(text.encode("cp1254"), wishes)
        assert rows[0]["name"] == "İstanbul Çağrı Şükrü ğüşiöç" and layout.encoding == "windows-1254"
        assert layout.encoding_is_guess is not bool(wishes.encoding) and layout.encoding_is_sure
        others = {it.encoding: it.samples for it in layout.encoding_alternatives}
        assert others["windows-1252"] == ("Ýstanbul Çaðrý Þükrü ðüþiöç",)
        assert Layout.load(json.loads(json.dumps(asdict(layout)))) == layout
    layout, rows = read(text.encode("cp1254"), Wishes(encoding="latin-1"))
    assert rows[0]["name"] == "Ýstanbul Çaðrý Þükrü ðüþiöç" and layout.encoding == "windows-1252"
    assert layout.encoding_alternatives[0].encoding == "windows-1252"


def test_layouts_of_other_versions_are_read():
    written = {**asdict(Layout(FileFormat.CSV, encoding="cp775")), "of_a_newer_version": 1}
    for name in ("encoding_is_guess", "encoding_is_sure", "encoding_alternatives"):
        del written[name]
    assert Layout.load(json.loads(json.dumps(written))) == Layout(FileFormat.CSV, encoding="cp775")


@pytest.mark.parametrize(("codec", "fault"), [("cp1254", RowFault.ENCODING), ("utf-8", None)])
def test_letters_beyond_ascii_far_behind_the_beginning(codec, fault, monkeypatch):
    """Behind what is looked at for them, no line is read as something else: it is named."""
    monkeypatch.setattr(layouts, "SCANNED", 2 * SAMPLE)
    plain = b"id,name\n" + b"1,plain\n" * (SAMPLE // 8)
    text = "".join(f"{n},Şükrü Çağlar\n" for n in range(9)).encode(codec)
    assert read(plain + text)[1][-1]["name"] == "Şükrü Çağlar"
    data = plain * 3 + text
    rows = list(Reader(io.BytesIO(data), detect(io.BytesIO(data))))
    assert {row.fault for row in rows[:-9]} == {None} and {row.fault for row in rows[-9:]} == {fault}


@pytest.mark.parametrize(
    "data", [b'[{"id":"1"}]', b'{"odata.metadata":"x","value":[{"id":"1"}]}', b'{"id":"1"}\n']
)
def test_json_in_its_forms(data):
    layout, rows = read(data)
    assert rows == [{"id": "1"}]
    assert layout.format is (FileFormat.NDJSON if data.endswith(b"\n") else FileFormat.JSON)


def test_entities_of_the_azure_cli():
    entity = {"PartitionKey": "p", "RowKey": "1", "n": {"edm_type": "Edm.Int64", "value": 5}}
    for indent in (None, 2):
        file = {"items": [entity, {"PartitionKey": "p"}], "nextMarker": {}}
        for name in ("", "a.json"):
            data = json.dumps(file, indent=indent).encode()
            assert read(data, Wishes(name=name))[1] == [entity, {"PartitionKey": "p"}]
    order = {"items": [{"sku": 1}], "PartitionKey": "p", "RowKey": "1"}
    assert read(json.dumps(order).encode())[1] == [order]
    order = {"PartitionKey": "p", "items": [{"PartitionKey": 1}]}
    assert read(json.dumps(order).encode())[1] == [order]


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
    # as the Finder and the Explorer make them
    others = "__MACOSX/d/._t.csv", "d/.DS_Store", "._t.csv", "Thumbs.db", "d/desktop.ini"
    assert read(zipped("d/t.csv", *others))[0].member == "d/t.csv"
    assert members(io.BytesIO(zipped("a.csv", *others, "b.csv"))) == ["a.csv", "b.csv"]


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
def test_refuses_unsupported_files(data, wishes, why):
    with pytest.raises(FileRefused, match=why):
        detect(io.BytesIO(data), Wishes(**wishes))


def test_columns_without_a_header_have_numbers():
    layout, rows = read(b"1,x\n2,y\n", Wishes(has_header=False))
    assert rows == [{"column1": "1", "column2": "x"}, {"column1": "2", "column2": "y"}]
    assert Layout.load({**{name: getattr(layout, name) for name in Layout.__slots__}}) == layout


PAGES = b'{"odata.metadata":"x","value":[{"id":"1"}]}\n{"odata.metadata":"x","value":[{"id":"2"}]}\n'


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (PAGES, "a.ndjson", FileFormat.JSON),
        (PAGES, "", FileFormat.JSON),
        (PAGES.partition(b"\n")[0], "a.jsonl.gz", FileFormat.JSON),
        (b'{"n":1,"value":[{"id":1}]}\n{"n":2,"value":[]}\n', "a.jsonl.gz", FileFormat.NDJSON),
        (b'{"id":1}\n', "a.json", FileFormat.JSON),
        (b'{"id":1}\n{"id":2}\n', "a.json", FileFormat.NDJSON),  # the usual form
        (b'{\n "id":1}\n', "a.ndjson", FileFormat.JSON),
        (b'{"id":1, "text": "' + b"x" * SAMPLE, "a.ndjson", FileFormat.NDJSON),
        (b'{"id":1, "text": "' + b"x" * SAMPLE, "a.json", FileFormat.JSON),
        (b'{"id":1, "text": "' + b"x" * SAMPLE, "", FileFormat.NDJSON),
        (b"id,name\n1,x\n", "a.json", FileFormat.CSV),  # the content is right
        (b"[draft],name\n1,x\n", "a.csv", FileFormat.CSV),
        (b"{id},name\n1,x\n", "a.json", FileFormat.CSV),
        (b'[{"id":1}]', "A.CSV", FileFormat.JSON),
        (b"PAR1" + b"x" * 20, "a.csv", FileFormat.PARQUET),
    ],
)
def test_the_name_of_a_file_is_a_hint(data, name, expected):
    assert detect(io.BytesIO(data), Wishes(name=name)).format is expected


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b""])
def test_pages_of_answers_are_read_whatever_the_file_is_called(end):
    for name in ("a.ndjson", "a.jsonl", "a.json", "a.csv", ""):
        _layout, rows = read(PAGES.replace(b"\n", end), Wishes(name=name))
        assert rows == [{"id": "1"}, {"id": "2"}]


def test_the_name_decides_between_delimiters_that_fit_as_well():
    data = b"a,b\tc\n1,2\t3\n"
    assert detect(io.BytesIO(data), Wishes(name="x.csv")).delimiter == ","
    assert detect(io.BytesIO(data), Wishes(name="x.tsv")).delimiter == "\t"
    assert detect(io.BytesIO(b"a;b\n1;2\n"), Wishes(name="x.tsv")).delimiter == ";"


def test_the_name_in_a_zip_file_is_a_hint():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("t.json", b'{"id":1}\n')
    content.seek(0)
    assert detect(content, Wishes(name="t.zip")).format is FileFormat.JSON


def test_too_many_columns_are_refused():
    def header(number):
        return ",".join(f"c{it}" for it in range(number)).encode() + b"\n" + b"1," * number + b"\n"

    assert len(detect(io.BytesIO(header(MOST_COLUMNS))).columns) == MOST_COLUMNS
    for number in (MOST_COLUMNS + 1, 20_000):
        for wishes in (Wishes(), Wishes(has_header=False)):
            with pytest.raises(FileRefused, match="At most 4000 can be read"):
                detect(io.BytesIO(header(number)), wishes)


@pytest.mark.parametrize("name", ["punycode", "hz", "iso2022_jp", "unicode_escape", "zlib", "klingon"])
def test_refuses_other_encodings_with_those_that_there_are(name):
    with pytest.raises(FileRefused, match=f"no encoding {name} .* windows-1252"):
        detect(io.BytesIO(b"id,name\n1,x\n"), Wishes(encoding=name))


def test_utf16_is_chosen_without_knowing_the_order_of_its_bytes():
    for codec in ("utf-16", "utf-16-le", "utf-16-be"):
        layout, rows = read("id,name\n1,Ayşe\n".encode(codec), Wishes(encoding="utf-16"))
        assert rows == [{"id": "1", "name": "Ayşe"}] and layout.encoding_alternatives == ()


def test_a_file_in_utf8_with_few_wrong_bytes_names_its_wrong_lines():
    data = "pk,rk,v\na,1,ok é\n".encode() + b"a,2,bad \xe9\n"
    layout = detect(io.BytesIO(data))
    assert (layout.encoding, layout.encoding_is_guess, layout.encoding_is_sure) == ("utf-8", True, False)
    assert [row.fault for row in Reader(io.BytesIO(data), layout)] == [None, RowFault.ENCODING]
