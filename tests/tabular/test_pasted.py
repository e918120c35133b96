"""Pasted text: formats, types and their reasons, missing and empty values, and errors with their positions."""

import math
from datetime import UTC, datetime

import pytest

from storage.domain.refusals import Reason, Refused
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.editing.input_context import InputContext
from storage.editing.typed_text import TextFault
from storage.tabular import pasted
from storage.tabular.pasted import PasteOptions, TooManyRows, TypeSource
from storage.tabular.rejects import Fault
from storage.tabular.report import ColumnUse

NOW = datetime(2026, 11, 20, 14, 3, 7, tzinfo=UTC)
NONE = PasteOptions()


def read(text, options=NONE, now=NOW, kind=AccountKind.STORAGE):
    return pasted.read(text, options, InputContext(now, kind), 1000)


def only(text, wishes=NONE):
    """Return the properties of the only row."""
    result = read(text, wishes)
    assert not result.problems
    [row] = result.rows
    return row.entity.properties


def faults(pasted_rows):
    """Return the position and kind of each problem."""
    return [
        (it.row.line, it.column, it.fault if it.invalid is None else it.invalid.fault, it.text)
        for it in pasted_rows.problems
    ]


def test_reads_what_a_spreadsheet_copies():
    result = read("PartitionKey\tRowKey\tName\tAge\nse\tada\tAda, Countess\t36\nse\talan\tAlan\t41\n")
    assert result.format == "tab-separated"
    assert [row.entity.key for row in result.rows] == [("se", "ada"), ("se", "alan")]
    assert result.rows[0].entity.properties == {
        "Name": EdmValue(Edm.STRING, "Ada, Countess"),
        "Age": EdmValue(Edm.INT32, 36),
    }
    assert [(column.name, column.type, column.why) for column in result.columns] == [
        ("Name", Edm.STRING, TypeSource.INFERRED),
        ("Age", Edm.INT32, TypeSource.INFERRED),
    ]


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["1", "2147483647"], Edm.INT32),
        (["1", "2147483648"], Edm.INT64),
        (["1", "1.5"], Edm.DOUBLE),
        (["NaN", "-0.0"], Edm.DOUBLE),
        (["true", "False"], Edm.BOOLEAN),
        (["2026-11-20T14:03:07Z"], Edm.DATETIME),
        (["c9da6455-213d-42c9-9a79-3e9149a57833"], Edm.GUID),
        *(
            ([value], Edm.STRING)
            for value in ("007", "1 000", "2026-11-20", "now", "c9da6455213d42c99a793e9149a57833", "null", "")
        ),
        (["1", "x"], Edm.STRING),
    ],
)
def test_finds_the_type_of_a_column(values, type_):
    lines = [f"p,{number},{value}" for number, value in enumerate(values)]
    result = read("\n".join(["PartitionKey,RowKey,P", *lines]))
    assert result.columns[0].type is type_


def test_a_column_keeps_the_type_that_the_table_knows_or_somebody_chooses():
    text = "PartitionKey,RowKey,P\np,r,5\n"
    assert only(text, PasteOptions(known={"P": Edm.INT64})) == {"P": EdmValue(Edm.INT64, 5)}
    assert only(text, PasteOptions(chosen={"P": Edm.STRING})) == {"P": EdmValue(Edm.STRING, "5")}
    other = read("PartitionKey,RowKey,P\np,r,x\n", PasteOptions(known={"P": Edm.INT64}))
    assert (other.columns[0].type, other.columns[0].why) == (Edm.STRING, TypeSource.DIFFERENT)
    # a missing type is the last one of its column
    typed = read("PartitionKey,RowKey,A,A@type\np,1,5,Int64\np,2,6,\n")
    assert typed.rows[1].entity.properties["A"] == EdmValue(Edm.INT64, 6)


def test_types_are_guessed_within_the_limits_of_the_account():
    text = "PartitionKey,RowKey,At\np,r,0001-06-01T00:00:00Z\n"
    assert read(text).columns[0].type is Edm.STRING
    assert read(text, kind=AccountKind.COSMOS).columns[0].type is Edm.DATETIME


@pytest.mark.parametrize("prefix", ["", "Edm.", "edm."])
def test_reads_typed_csv_of_all_types(prefix):
    header = "PartitionKey,RowKey,Timestamp,S,S@type,I,I@type,L,L@type,D,D@type,B,B@type,T,T@type,G,G@type,X,X@type"
    row = (
        f'p,r,2020-01-01T00:00:00Z,"a ""b""\nc",{prefix}String,5,{prefix}Int32,9223372036854775807,{prefix}Int64,'
        f"NaN,{prefix}Double,true,{prefix}Boolean,2026-11-20T14:03:07.1234567Z,{prefix}DateTime,"
        f"c9da6455-213d-42c9-9a79-3e9149a57833,{prefix}Guid,AP8=,{prefix}Binary"
    )
    result = only(f"\ufeff{header}\r\n{row}\r\n")
    assert result["S"].value == 'a "b"\nc'
    assert result["I"] == EdmValue(Edm.INT32, 5)
    assert result["L"] == EdmValue(Edm.INT64, 2**63 - 1)
    assert math.isnan(result["D"].value)
    assert result["B"].value is True
    assert result["T"].value % 10_000_000 == 1_234_567
    assert result["G"].type is Edm.GUID
    assert result["X"].value == b"\x00\xff"
    assert "Timestamp" not in result


def test_tells_absent_from_empty():
    text = "PartitionKey,RowKey,A,A@type,B,B@type,C,C@type,D,E,E@type\n,,,,,String,,Int32,,,Binary\n"
    result = read(text)
    assert result.rows[0].entity.key == ("", "")
    assert result.rows[0].entity.properties == {"B": EdmValue(Edm.STRING, ""), "E": EdmValue(Edm.BINARY, b"")}
    assert result.absent == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_finds_the_delimiter(delimiter):
    text = f"PartitionKey{delimiter}RowKey{delimiter}A\np{delimiter}r{delimiter}x\n"
    assert only(text)["A"].value == "x"


def test_the_header_tells_the_delimiter_before_the_rows():
    rows = "".join(f"p\t{number}\t1,2;3|4,5\n" for number in range(5))
    result = read("PartitionKey\tRowKey\tA\n" + rows.replace("\t", ",,,\t"))
    assert result.format == "tab-separated" and len(result.rows) == 5
    assert only("PartitionKey;RowKey;A\np;r;1,5,6,7,8\n")["A"].value == "1,5,6,7,8"


def test_lines_without_a_header_are_those_of_the_grid():
    columns = PasteOptions(columns=["PartitionKey", "RowKey", "Name"])
    assert only("se\tada\tAda", columns)["Name"].value == "Ada"
    assert only("se\tse\tse", columns)["Name"].value == "se"
    assert only("PartitionKey\trow_key\tAge\np\tr\t1", columns) == {"Age": EdmValue(Edm.INT32, 1)}
    with pytest.raises(Refused) as refusal:
        read("ada\tAda", columns)
    assert refusal.value.refusal.reason is Reason.FILE_ROWS_NO_KEY


def test_says_what_is_wrong_in_which_line_and_column():
    text = (
        "PartitionKey,RowKey,A,A@type,bad name\n"
        "p,1,x,Int32,\n"
        "p,2,1,Edm.GeographyPoint,\n"
        "p/q,3,1,Int32,\n"
        "p,4,1,Int32,,,\n"
        "p\n"
    )
    result = read(text)
    assert faults(result) == [
        (2, "A", TextFault.NOT_WHOLE, "x"),
        (3, "A", Fault.UNKNOWN_TYPE, "Edm.GeographyPoint"),
        (4, "PartitionKey", Fault.KEY_CHARACTERS, "p/q"),
        (5, "", Fault.TOO_MANY_FIELDS, "p,4,1,Int32,,,"),
        (6, "RowKey", Fault.NO_KEY, ""),
    ]
    assert ("bad name", ColumnUse.RENAMED, "bad_name") in result.report.columns
    # all that is wrong with a row is told at once
    all_wrong = read("PartitionKey,RowKey,A,A@type,B,B@type\np/q,r,x,Int32,y,Guid\n")
    assert [it.column for it in all_wrong.problems] == ["PartitionKey", "A", "B"]


def test_refuses_rows_without_or_with_the_same_or_with_bad_keys():
    text = f"PartitionKey,RowKey\np,1\np,1\np\np/q,2\np,{'r' * 1025}\n"
    result = read(text)
    assert len(result.rows) == 1
    reasons = [problem.fault for problem in result.problems]
    assert reasons == [Fault.EXISTS, Fault.NO_KEY, Fault.KEY_CHARACTERS, Fault.KEY_LONG]


JSON = (
    '{"PartitionKey": "p", "RowKey": "r", "A": 5, "B": "9007199254740993", "B@odata.type": "Edm.Int64",'
    ' "C": 9007199254740993, "N": null}'
)


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        (JSON, "NDJSON"),
        (JSON.replace(", ", ",\n"), "JSON"),
        (f"[{JSON}]", "JSON"),
        (f'{{"odata.metadata": "x", "value": [{JSON}]}}', "JSON"),
        (JSON + "\n\n" + JSON.replace('"r"', '"s"'), "NDJSON"),
    ],
)
def test_reads_json_of_the_service(text, format_):
    result = read(text)
    assert result.format == format_ and not result.problems
    assert result.rows[0].entity.properties == {
        "A": EdmValue(Edm.INT32, 5),
        "B": EdmValue(Edm.INT64, 9007199254740993),
        "C": EdmValue(Edm.INT64, 9007199254740993),  # every digit stays
    }
    assert {column.name: column.why for column in result.columns} == {
        "A": TypeSource.INFERRED,
        "B": TypeSource.DECLARED,
        "C": TypeSource.INFERRED,
    }


def test_says_what_is_wrong_with_json():
    text = (
        '[{"PartitionKey": "p", "RowKey": "1", "A": {"b": 1}}, 5, {"RowKey": "2"},'
        ' {"PartitionKey": "p", "RowKey": "3", "A": "x", "A@odata.type": "Edm.Int32"},'
        ' {"PartitionKey": "p", "RowKey": "4", "A": "x", "A@odata.type": "Edm.Point"}]'
    )
    result = read(text)
    reasons = {problem.row.line: problem.fault for problem in result.problems}
    assert reasons == {
        1: Fault.NESTED, 2: Fault.NO_OBJECT, 3: Fault.NO_KEY, 4: Fault.NOT_OF_TYPE, 5: Fault.UNKNOWN_TYPE,
    }  # fmt: skip
    assert not result.rows


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("", Reason.FILE_ROWS_EMPTY, None),
        (" \n", Reason.FILE_ROWS_EMPTY, None),
        ('{"PartitionKey": "p"},\n\n!', Reason.FILE_ROWS_NOT_JSON, 1),
        ("{PartitionKey: 'p'}", Reason.FILE_ROWS_NOT_JSON, 1),
        ("[" * 100_000, Reason.FILE_ROWS_NOT_JSON, 1),
        ("a,b\n1,2", Reason.FILE_ROWS_NO_KEY, None),
    ],
)
def test_cannot_read(text, reason, line):
    with pytest.raises(Refused) as refusal:
        read(text)
    assert refusal.value.refusal.reason is reason
    assert refusal.value.refusal.facts.get("line") == line


def test_a_row_that_cannot_be_read_leaves_the_others():
    row = '{"PartitionKey": "p", "RowKey": "r"}'
    assert faults(read(row + "\n{")) == [(2, "", Fault.BAD_JSON, "{")]
    result = read('PartitionKey,RowKey\np,r\n"p,s')
    assert len(result.rows) == 1 and faults(result) == [(3, "", Fault.BAD_CSV, '"p,s')]


def test_more_rows_than_allowed_are_counted():
    with pytest.raises(TooManyRows) as refusal:
        read("PartitionKey,RowKey\n" + "".join(f"p,{number}\n" for number in range(1001)))
    assert refusal.value.count == 1001


def test_keys_in_other_spellings_and_columns_without_names_are_kept():
    text = "rowkey,RowKey,PartitionKey,,n,n@odata.type,Timestamp,odata.etag,\nx,r,p,y,5,int64,2026-11-28,W,\n,,,,,,,,\n"
    result = read(text)
    assert only(text) == {
        "rowkey": EdmValue(Edm.STRING, "x"), "column4": EdmValue(Edm.STRING, "y"), "n": EdmValue(Edm.INT64, 5),
    }  # fmt: skip
    assert set(result.report.columns) == {
        ("column4", ColumnUse.UNNAMED, "column4"), ("n@odata.type", ColumnUse.TYPES, "n"),
        ("Timestamp", ColumnUse.TIMESTAMP, ""), ("odata.etag", ColumnUse.CONTROL, ""),
        ("column9", ColumnUse.EMPTY, ""),
    }  # fmt: skip
    assert result.report.blank_rows == 1
    with pytest.raises(Refused) as refusal:
        read("PartitionKey,RowKey,a,a\np,r,1,2\n")
    assert (refusal.value.refusal.reason, refusal.value.refusal.facts["column"]) == (
        Reason.FILE_ROWS_COLUMN_TWICE,
        "a",
    )
    assert only("partition_key,Row Key,n@type\np,r,Int32\n") == {"n_type": EdmValue(Edm.STRING, "Int32")}


def test_no_member_of_json_is_lost():
    text = (
        '{"odata.metadata": "m", "total": 3, "value": ['
        '{"PartitionKey": "p", "RowKey": "1", "rowkey": "x", "n": "5", "n@type": "int64", "odata.etag": "W",'
        ' "Timestamp": "x"},'
        '{"PartitionKey": "p", "RowKey": "2", "a": 1, "a": 2},'
        '{"PartitionKey": "p", "RowKey": "3", "n@type": "Int32"},'
        '{"PartitionKey": "p", "RowKey": "4", "a": 0.1000000000000000055511, "b": 12345678901234567890, "c": 1e400},'
        '{"PartitionKey": "p", "RowKey": "5", "a@odata.type": "Edm.Double", "a": 9007199254740993},'
        '{"PartitionKey": "p", "RowKey": "6", "t@type": "DateTime", "t": "2026-11-28T01:02:03.12345678Z"}]}'
    )
    result = read(text)
    [row, other] = result.rows
    assert row.entity.properties == {"rowkey": EdmValue(Edm.STRING, "x"), "n": EdmValue(Edm.INT64, 5)}
    assert not other.entity.properties  # its n@type says the type of a value that it has not
    assert set(result.report.columns) == {
        ("odata.metadata", ColumnUse.CONTROL, ""), ("total", ColumnUse.BESIDE_ROWS, ""),
        ("odata.etag", ColumnUse.CONTROL, ""), ("Timestamp", ColumnUse.TIMESTAMP, ""),
        ("n@type", ColumnUse.TYPES, "n"),
        ("a@odata.type", ColumnUse.TYPES, "a"), ("t@type", ColumnUse.TYPES, "t"),
    }  # fmt: skip
    assert faults(result) == [
        (2, "a", Fault.MEMBER_TWICE, '{"PartitionKey": "p", "RowKey": "2", "a": 1, "a": 2}'),
        (4, "a", Fault.INEXACT, "0.1000000000000000055511"),
        (4, "b", Fault.INEXACT, "12345678901234567890"),
        (4, "c", TextFault.TOO_LARGE, "1e400"),
        (5, "a", TextFault.DIGITS_LOST, "9007199254740993"),
        (6, "t", TextFault.TOO_PRECISE, "2026-11-28T01:02:03.12345678Z"),
    ]


def test_a_double_is_not_rounded():
    text = "PartitionKey,RowKey,A,A@type\np,1,0.1000000000000000055511,Double\n"
    [problem] = read(text).problems
    assert problem.invalid.fault is TextFault.DIGITS_LOST
    untyped = text.replace("@type", "2")
    known = read(untyped, PasteOptions(known={"A": Edm.DOUBLE}))
    assert known.rows[0].entity.properties["A"] == EdmValue(Edm.STRING, "0.1000000000000000055511")
