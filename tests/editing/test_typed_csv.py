"""What is pasted: formats, types and why, absent and empty, and what is wrong where."""

import math
from datetime import UTC, datetime

import pytest

from storage.domain.errors import KeyValueTooLarge, OutOfRangeInput, PropertyNameInvalid
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.pasted_rows import (
    Omission,
    RowFault,
    RowFormat,
    TypeSource,
    UnreadableReason,
    UnreadableRows,
)
from storage.editing.typed_csv import ColumnOptions, read
from storage.editing.typed_text import TextFault

NOW = datetime(2026, 11, 20, 14, 3, 7, tzinfo=UTC)
NONE = ColumnOptions()


def only(text, wishes=NONE):
    """The properties of the one row."""
    found = read(text, NOW, wishes)
    assert not found.problems
    [row] = found.rows
    return row.entity.properties


def test_reads_what_a_spreadsheet_copies():
    found = read(
        "PartitionKey\tRowKey\tName\tAge\nse\tada\tAda, Countess\t36\nse\talan\tAlan\t41\n", NOW, NONE
    )
    assert found.format is RowFormat.TSV
    assert [row.entity.key for row in found.rows] == [("se", "ada"), ("se", "alan")]
    assert found.rows[0].entity.properties == {
        "Name": EdmValue(Edm.STRING, "Ada, Countess"),
        "Age": EdmValue(Edm.INT32, 36),
    }
    assert [(column.name, column.type, column.why) for column in found.columns] == [
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
    found = read("\n".join(["PartitionKey,RowKey,P", *lines]), NOW, NONE)
    assert found.columns[0].type is type_


def test_a_column_keeps_the_type_that_the_table_knows_or_somebody_chooses():
    text = "PartitionKey,RowKey,P\np,r,5\n"
    assert only(text, ColumnOptions(known={"P": Edm.INT64})) == {"P": EdmValue(Edm.INT64, 5)}
    assert only(text, ColumnOptions(chosen={"P": Edm.STRING})) == {"P": EdmValue(Edm.STRING, "5")}
    other = read("PartitionKey,RowKey,P\np,r,x\n", NOW, ColumnOptions(known={"P": Edm.INT64}))
    assert (other.columns[0].type, other.columns[0].why) == (Edm.STRING, TypeSource.DIFFERENT)
    # a missing type is the last one of its column
    typed = read("PartitionKey,RowKey,A,A@type\np,1,5,Int64\np,2,6,\n", NOW, NONE)
    assert typed.rows[1].entity.properties["A"] == EdmValue(Edm.INT64, 6)


@pytest.mark.parametrize("prefix", ["", "Edm.", "edm."])
def test_reads_typed_csv_of_all_types(prefix):
    header = "PartitionKey,RowKey,Timestamp,S,S@type,I,I@type,L,L@type,D,D@type,B,B@type,T,T@type,G,G@type,X,X@type"
    row = (
        f'p,r,2020-01-01T00:00:00Z,"a ""b""\nc",{prefix}String,5,{prefix}Int32,9223372036854775807,{prefix}Int64,'
        f"NaN,{prefix}Double,true,{prefix}Boolean,2026-11-20T14:03:07.1234567Z,{prefix}DateTime,"
        f"c9da6455-213d-42c9-9a79-3e9149a57833,{prefix}Guid,AP8=,{prefix}Binary"
    )
    found = only(f"\ufeff{header}\r\n{row}\r\n")
    assert found["S"].value == 'a "b"\nc'
    assert found["I"] == EdmValue(Edm.INT32, 5)
    assert found["L"] == EdmValue(Edm.INT64, 2**63 - 1)
    assert math.isnan(found["D"].value)
    assert found["B"].value is True
    assert found["T"].value % 10_000_000 == 1_234_567
    assert found["G"].type is Edm.GUID
    assert found["X"].value == b"\x00\xff"
    assert "Timestamp" not in found


def test_tells_absent_from_empty():
    text = "PartitionKey,RowKey,A,A@type,B,B@type,C,C@type,D,E,E@type\n,,,,,String,,Int32,,,Binary\n"
    found = read(text, NOW, NONE)
    assert found.rows[0].entity.key == ("", "")
    assert found.rows[0].entity.properties == {
        "B": EdmValue(Edm.STRING, ""),
        "E": EdmValue(Edm.BINARY, b""),
    }
    assert found.absent == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_finds_the_delimiter(delimiter):
    text = f"PartitionKey{delimiter}RowKey{delimiter}A\np{delimiter}r{delimiter}x\n"
    assert only(text)["A"].value == "x"


def test_lines_without_a_header_are_those_of_the_grid():
    columns = ColumnOptions(columns=["PartitionKey", "RowKey", "Name"])
    assert only("se\tada\tAda", columns)["Name"].value == "Ada"
    with pytest.raises(UnreadableRows) as refusal:
        read("ada\tAda", NOW, columns)
    assert refusal.value.reason is UnreadableReason.NO_KEYS


def test_says_what_is_wrong_in_which_line_and_column():
    text = (
        "PartitionKey,RowKey,A,A@type,bad name\n"
        "p,1,x,Int32,\n"
        "p,2,1,Edm.GeographyPoint,\n"
        "p/q,3,1,Int32,\n"
        "p,4,1,Int32,,,\n"
        "p\n"
    )
    problems = read(text, NOW, NONE).problems
    assert (problems[0].line, problems[0].column, problems[0].reason.fault) == (2, "A", TextFault.NOT_WHOLE)
    assert isinstance(problems[1].reason, PropertyNameInvalid)
    found = [(problem.reason, problem.line) for problem in problems]
    assert (RowFault.UNKNOWN_TYPE, 3) in found
    assert (RowFault.TOO_MANY_FIELDS, 5) in found


def test_refuses_rows_without_or_with_the_same_or_with_bad_keys():
    text = f"PartitionKey,RowKey\np,1\np,1\np\np/q,2\np,{'r' * 1025}\n"
    found = read(text, NOW, NONE)
    assert len(found.rows) == 1 and found.count == 5
    reasons = [problem.reason for problem in found.problems]
    assert reasons[:2] == [RowFault.TWICE, RowFault.NO_KEY]
    assert [type(reason) for reason in reasons[2:]] == [OutOfRangeInput, KeyValueTooLarge]


JSON = (
    '{"PartitionKey": "p", "RowKey": "r", "A": 5, "B": "9007199254740993", "B@odata.type": "Edm.Int64",'
    ' "C": 9007199254740993, "N": null}'
)


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        (JSON, RowFormat.JSON),
        (f"[{JSON}]", RowFormat.JSON),
        (f'{{"odata.metadata": "x", "value": [{JSON}]}}', RowFormat.JSON),
        (JSON + "\n\n" + JSON.replace('"r"', '"s"'), RowFormat.NDJSON),
    ],
)
def test_reads_json_of_the_service(text, format_):
    found = read(text, NOW, NONE)
    assert found.format is format_ and not found.problems
    assert found.rows[0].entity.properties == {
        "A": EdmValue(Edm.INT32, 5),
        "B": EdmValue(Edm.INT64, 9007199254740993),
        "C": EdmValue(Edm.INT64, 9007199254740993),  # every digit stays
    }
    assert {column.name: column.why for column in found.columns} == {
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
    found = read(text, NOW, NONE)
    reasons = {problem.line: problem.reason for problem in found.problems}
    del reasons[4]
    assert reasons == {
        1: RowFault.NESTED, 2: RowFault.NO_OBJECT, 3: RowFault.NO_KEY, 5: RowFault.UNKNOWN_TYPE,
    }  # fmt: skip
    assert not found.rows


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("", UnreadableReason.EMPTY, 0),
        (" \n", UnreadableReason.EMPTY, 0),
        ("{}\n{", UnreadableReason.NO_JSON, 2),
        ("[" * 100_000, UnreadableReason.NO_JSON, None),
        ("a,b\n1,2", UnreadableReason.NO_KEYS, 1),
        ('PartitionKey,RowKey\n"p,r', UnreadableReason.BAD_CSV, None),
    ],
)
def test_cannot_read(text, reason, line):
    with pytest.raises(UnreadableRows) as refusal:
        read(text, NOW, NONE)
    assert refusal.value.reason is reason
    if line is not None:
        assert refusal.value.line == line


def test_keys_in_other_spellings_and_columns_without_names_are_kept():
    text = "rowkey,RowKey,PartitionKey,,n,n@odata.type,Timestamp,odata.etag,\nx,r,p,y,5,int64,2026-11-28,W,\n,,,,,,,,\n"
    found = read(text, NOW, NONE)
    assert only(text) == {
        "rowkey": EdmValue(Edm.STRING, "x"), "column4": EdmValue(Edm.STRING, "y"), "n": EdmValue(Edm.INT64, 5),
    }  # fmt: skip
    assert (
        found.left_out == {"odata.etag": Omission.CONTROL, "Timestamp": Omission.TIMESTAMP}
        and found.blank == 1
    )
    with pytest.raises(UnreadableRows) as refusal:
        read("PartitionKey,RowKey,a,a\np,r,1,2\n", NOW, NONE)
    assert (refusal.value.reason, refusal.value.column) == (UnreadableReason.COLUMN_TWICE, "a")
    [problem] = read("PartitionKey,RowKey,n@type\np,r,Int32\n", NOW, NONE).problems
    assert problem.column == "n@type" and isinstance(problem.reason, PropertyNameInvalid)


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
    found = read(text, NOW, NONE)
    [row] = found.rows
    assert row.entity.properties == {"rowkey": EdmValue(Edm.STRING, "x"), "n": EdmValue(Edm.INT64, 5)}
    assert found.left_out == {
        "odata.metadata": Omission.CONTROL, "total": Omission.BESIDE_ROWS, "odata.etag": Omission.CONTROL,
        "Timestamp": Omission.TIMESTAMP,
    }  # fmt: skip
    problems = [
        (it.line, it.column, getattr(it.reason, "fault", it.reason), it.text) for it in found.problems
    ]
    assert problems[0] == (2, "a", RowFault.MEMBER_TWICE, "")
    assert problems[1][:2] == (3, "n@type") and isinstance(problems[1][2], PropertyNameInvalid)
    assert problems[2:] == [
        (4, "a", RowFault.DIGITS_LOST, "0.1000000000000000055511"),
        (4, "b", RowFault.DIGITS_LOST, "12345678901234567890"),
        (4, "c", TextFault.TOO_LARGE, "1e400"),
        (5, "a", TextFault.DIGITS_LOST, "9007199254740993"),
        (6, "t", TextFault.TOO_PRECISE, "2026-11-28T01:02:03.12345678Z"),
    ]


def test_a_double_is_not_rounded():
    text = "PartitionKey,RowKey,A,A@type\np,1,0.1000000000000000055511,Double\n"
    [problem] = read(text, NOW, NONE).problems
    assert problem.reason.fault is TextFault.DIGITS_LOST
    untyped = text.replace("@type", "2")
    known = read(untyped, NOW, ColumnOptions(known={"A": Edm.DOUBLE}))
    assert known.rows[0].entity.properties["A"] == EdmValue(Edm.STRING, "0.1000000000000000055511")
