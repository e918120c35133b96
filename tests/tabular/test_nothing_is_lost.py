"""The law of rows: everything in a file, or in pasted text, becomes a key or a property, or is named with a reason.

Files of all formats are generated with whatever people's files have: keys in several spellings, types beside values and
without them, control information, columns without names, blank and ragged rows, nested values, huge numbers.
"""

import csv
import io
import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.refusals import Refused
from storage.domain.values import edm
from storage.domain.values.edm import Edm
from storage.editing.input_context import InputContext
from storage.tabular import pasted, proposals
from storage.tabular.file import RowFile
from storage.tabular.layout import FileFormat, Wishes
from storage.tabular.mapping import ColumnMapping, OnMisfit
from storage.tabular.pasted import PasteOptions
from storage.tabular.rejects import RejectWriter
from storage.tabular.report import EXAMPLES, ColumnUse, FileReport
from storage.tabular.writing import value_text
from tests.examples import of_usual

CONTEXT = InputContext(datetime(2026, 11, 28, tzinfo=UTC))

# columns

KEYS = ["PartitionKey", "RowKey", "partitionKey", "partitionkey", "rowkey", "row_key", "Row Key", "ROWKEY"]
NAMES = st.sampled_from(
    [
        *KEYS, *KEYS, "Timestamp", "timestamp", "time_stamp", "n", "N", "a b", "a_b", "a-b", "1x", "_", "é",
        "名", "x"*300, "e@mail", "n@type", "n@odata.type", "n@Type", "N@OData.Type", "big@type", "big",
        "odata.etag", "odata.metadata", "OData.Type", "@odata.context", "n@odata.navigationLink", "@type",
        "Timestamp@type", "column3", "column2", "value", "reject:x", "n@type@type",
        "n@odata.type@odata.type", "text", "²",
    ]
)  # fmt: skip
LEFT_OUT = {ColumnUse.TIMESTAMP, ColumnUse.CONTROL, ColumnUse.TYPES, ColumnUse.BESIDE_ROWS, ColumnUse.EMPTY}

TYPE_NAMES = [
    "Int32",
    "int64",
    "Edm.Int64",
    "EDM.DOUBLE",
    "String",
    "string",
    "Edm.Boolean",
    "DateTime",
    "Guid",
    "Binary",
]
TEXTS = st.sampled_from(
    [
        "", "x", "0", "5", "-7", "007", "1.5", "1.50", "100.0", "1e3", "1e400", "true", "TRUE", "null",
        "NaN", "n/a", " ", "9007199254740993", "12345678901234567890", "123456789012345678901234",
        "0.1000000000000000055511", "a;b", "a,b", 'say "x"', "two\nlines", "2026-11-26",
        "2026-11-26T01:02:03.1234567Z", "2026-11-26T01:02:03.12345678Z",
        "c9da6455-213d-42c9-9a79-3e9149a57833", "AP8=", "Ş", "😀", "=1+1", "1.234,56", "p/q", *TYPE_NAMES,
    ]
)  # fmt: skip
NUMBERS = st.sampled_from(
    [
        "0", "5", "-7", "2147483648", "9007199254740993", "9223372036854775807", "9223372036854775808",
        "123456789012345678901234", "1180591620717411303424", "1" + "0"*30, "1.5", "1.50", "100.0", "1e3",
        "1E-7", "-0.0", "0.1000000000000000055511", "0.10000000000000001", "1e400", "-1e400", "1e-400",
        "4e-324", "1"*5000, "9"*400, "0.84551240822557006", "9007199254740993.0",
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Raw:
    """A piece of JSON as it stands in a file."""

    text: str


JSON_VALUES = (
    TEXTS
    | NUMBERS.map(Raw)
    | st.integers(-(2**70), 2**70).map(lambda number: Raw(str(number)))
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda number: Raw(repr(number)))
    | st.sampled_from(
        [Raw("true"), Raw("false"), Raw("null"), Raw('{"x": 1.50}'), Raw("[1, 2]"), Raw('{"a":1,"a":2}')]
    )
)
SAMPLED = st.sampled_from([1, 1000])  # rows; columns may come later


# results of reading a file


@dataclass
class Read:
    entities: dict  # by line
    rejected: dict
    report: FileReport
    mapping: object
    layout: object


def read(data, wishes, on_misfit=OnMisfit.REJECT, sampled=1000):
    """Import a file; the mapping is proposed after a look at so many rows."""
    file = RowFile(lambda: io.BytesIO(data), wishes)
    proposal = proposals.propose(file.layout, file.sample().rows[:sampled], CONTEXT)
    keys = {
        name: "" if getattr(proposal.mapping, name) else default
        for name, default in (("partition_key", "p"), ("row_key", "{#row}"))
    }
    mapping = proposals.complete(proposal, **keys)
    if on_misfit is not OnMisfit.REJECT:
        mapping = replace(mapping, columns=tuple(replace(it, on_misfit=on_misfit) for it in mapping.columns))
    mapping.check(proposal.names)
    report, entities, rejected = FileReport(), {}, {}
    for chunk in file.chunks(mapping, CONTEXT, most=lambda: 3):
        report.add(FileReport.load(json.loads(json.dumps(chunk.report.dump()))))
        entities.update({row.line: entity for row, entity in chunk.entities})
        rejected.update({reject.row.line: reject for reject in chunk.rejects})
    return Read(entities, rejected, report, mapping, file.layout)


def account_for(result, line, column, text, *, is_json=False):
    """Require that a value is in the entity of its row, or that its row or its column is named."""
    if line in result.rejected:
        reject = result.rejected[line]
        assert (
            reject.sentence and "of the type ." not in reject.sentence and "range of ." not in reject.sentence
        )
        writer = RejectWriter(result.layout)
        stands = writer.write([reject]).decode()
        assert is_in(text, stands), (text, stands)
        return
    entity = result.entities[line]
    uses = {(it.use, it.target) for it in result.report.columns if it.column == column}
    if any(use in LEFT_OUT for use, _ in uses):
        return
    templates = result.mapping.partition_key, result.mapping.row_key
    for name, key, template in zip(("PartitionKey", "RowKey"), entity.key, templates, strict=True):
        if template == f"{{{column}}}":
            assert key == text and (column == name or (ColumnUse.KEY, name) in uses)
            return
    # the first of many different values are named, and the others counted
    if any(
        it.column == column and (text[:80] in it.examples or it.number > len(it.examples) == EXAMPLES)
        for it in result.report.values
    ):
        return
    targets = [target for use, target in uses if use in (ColumnUse.RENAMED, ColumnUse.UNNAMED)] or [column]
    values = [entity.properties[it] for it in targets if it in entity.properties]
    assert any(says(value, text, is_json=is_json) for value in values), (
        column,
        text,
        targets,
        dict(entity.properties),
    )


def is_in(text, stands):
    """Return whether a text, or a number, occurs in a line of CSV or JSON; a bad line is a text itself."""
    lines = [stands]
    if stands.startswith("{"):
        document = json.loads(stands, parse_int=str, parse_float=str)
        lines += [document["text"]] if isinstance(document.get("text"), str) else []
    quoted = text, text.replace('"', '""'), json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    return any(it in line for it in quoted for line in lines)


def says(value, text, *, is_json):
    """Return whether a property has the value in the file."""
    match value.type:
        case Edm.STRING:
            return value.value == text
        case Edm.INT32 | Edm.INT64:
            return Decimal(text) == value.value
        case Edm.DOUBLE:
            if not math.isfinite(value.value):
                return text in ("NaN", "Infinity", "-Infinity")
            digits = len(Decimal(text).as_tuple().digits)
            same = Decimal(text) in (Decimal(repr(value.value)), Decimal(value.value))
            return same or (digits <= 17 and Decimal(f"{value.value:.{digits - 1}e}") == Decimal(text))
        case Edm.DATETIME:
            fraction = text.partition(".")[2].rstrip("Z")
            return edm.read_datetime(text) == value.value and len(fraction) <= 7
    return value_text(value).lower() == text.lower()


# CSV


@st.composite
def csv_files(draw, first=()):
    """Draw a file that begins with these columns, and its delimiter."""
    delimiter = draw(st.sampled_from(",;\t|"))
    header = st.lists(NAMES | st.just(""), min_size=2, max_size=8, unique_by=lambda name: name or object())
    names = [*first, *(name for name in draw(header.filter(any)) if name not in first)]
    rows = draw(st.lists(st.lists(TEXTS, min_size=1, max_size=len(names) + 2), max_size=8))
    rows += [[""] * len(names)] * draw(st.integers(0, 3))
    ends = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    written = io.StringIO(newline="")
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    if ends == "\r":  # line ends of old Macs
        rows = [[text.replace("\n", " ") for text in row] for row in rows]
    writer = csv.writer(written, delimiter=delimiter, lineterminator=ends, quoting=quoting)
    writer.writerows([names, *(draw(st.permutations(rows)))])
    head = draw(st.sampled_from(["", "\ufeff", f"sep={delimiter}{ends}" if ends != "\r" else ""]))
    return head + written.getvalue(), delimiter


def require_csv(result, data):
    delimiter = result.layout.delimiter
    if not result.layout.columns:
        return  # nothing but blank rows
    text = data.removeprefix("\ufeff").removeprefix(f"sep={delimiter}\r\n").removeprefix(f"sep={delimiter}\n")
    newline = result.layout.line_end if result.layout.line_end == "\r" else ""
    lines = csv.reader(
        io.StringIO(text.replace("\r", "\n") if newline else text, newline=""), delimiter=delimiter
    )
    offset = 1 if result.layout.has_separator_line else 0
    blank, header = 0, None
    for fields in lines:
        if not any(fields) or (len(fields) == 1 and len(result.layout.columns) > 1 and not fields[0].strip()):
            blank += 1
        elif header is None:
            header = fields
        else:
            line = lines.line_num + offset
            for column, text in zip(result.layout.columns, fields, strict=False):
                if text:
                    account_for(result, line, column, text)
            for text in fields[len(result.layout.columns) :]:
                account_for(result, line, "", text)
    assert result.report.blank_rows == blank
    for column, name in zip(result.layout.columns, header or (), strict=False):
        # a column without a name is named if it has values
        uses = [it.use for it in result.report.columns if it.column == column]
        assert name.strip() or uses or not result.entities


@hypothesis.settings(max_examples=of_usual(60))
@given(csv_files(), st.sampled_from(OnMisfit), SAMPLED)
def test_csv(file, on_misfit, sampled):
    data, delimiter = file
    wishes = Wishes(FileFormat.CSV, encoding="utf-8", delimiter=delimiter)
    require_csv(read(data.encode(), wishes, on_misfit, sampled), data)


@hypothesis.settings(max_examples=of_usual(60))
@given(csv_files(["PartitionKey", "RowKey"]))
def test_pasted_text(file):
    data, _delimiter = file
    options = PasteOptions(known={"n": Edm.INT64, "big": Edm.DOUBLE, "text": Edm.DATETIME})
    try:
        result = pasted.read(data, options, CONTEXT, 1000)
    except Refused:
        return  # with the reason; so is a text whose delimiter is not clear
    entities = {row.line: row.entity for row in result.rows}
    rejected = {problem.row.line: problem for problem in result.problems}
    mapping = ColumnMapping("{PartitionKey}", "{RowKey}")
    require_csv(Read(entities, rejected, result.report, mapping, result.layout), data)


# JSON


@st.composite
def objects(draw):
    """Draw the members of an object, some of them with the same name."""
    names = draw(st.lists(NAMES | st.just("") | st.sampled_from(["PartitionKey", "RowKey"]), max_size=8))
    names = names if draw(st.booleans()) else list(dict.fromkeys(names))
    return [
        (name, draw(st.sampled_from(TYPE_NAMES) if "type" in name.lower() else JSON_VALUES)) for name in names
    ]


def write_object(members):
    return "{" + ", ".join(f"{json.dumps(name)}: {write_value(value)}" for name, value in members) + "}"


def write_value(value):
    return value.text if isinstance(value, Raw) else json.dumps(value)


def require_objects(result, written):
    """``written``: members by line."""
    for line, members in written.items():
        twice = [name for name, number in Counter(name for name, _ in members).items() if number > 1]
        if twice:
            assert result.rejected[line].column in [*twice, "a"]  # or that of a nested object
        for name, value in members:
            text = value.text if isinstance(value, Raw) else value
            if text != "null" or not isinstance(value, Raw):
                account_for(result, line, name, text, is_json=True)


@hypothesis.settings(max_examples=of_usual(60))
@given(st.lists(objects(), min_size=1, max_size=6), st.sampled_from(OnMisfit), SAMPLED)
def test_ndjson(rows, on_misfit, sampled):
    data = "".join(write_object(it) + "\n" for it in rows)
    result = read(data.encode(), Wishes(FileFormat.NDJSON, encoding="utf-8"), on_misfit, sampled)
    require_objects(result, dict(enumerate(rows, 1)))


@hypothesis.settings(max_examples=of_usual(40))
@given(st.lists(objects(), min_size=1, max_size=6), st.sampled_from(OnMisfit), st.booleans())
def test_json(rows, on_misfit, is_page):
    data = "[\n" + ",\n".join(map(write_object, rows)) + "]"
    if is_page:
        data = '{"odata.metadata": "m", "total": 5, "value": ' + data + ', "odata.nextLink": "x"}'
    result = read(data.encode(), Wishes(FileFormat.JSON, encoding="utf-8"), on_misfit)
    require_objects(result, dict(enumerate(rows, 2)))
    beside = {
        it.column for it in result.report.columns if it.use in (ColumnUse.BESIDE_ROWS, ColumnUse.CONTROL)
    }
    assert not is_page or beside >= {"odata.metadata", "total", "odata.nextLink"}


@hypothesis.settings(max_examples=of_usual(40))
@given(objects())
def test_a_json_object_alone(members):
    hypothesis.assume(not any(name == "value" for name, _ in members))
    result = read(write_object(members).encode(), Wishes(FileFormat.JSON, encoding="utf-8"))
    require_objects(result, {1: members})


# Parquet


@st.composite
def tables(draw):
    pyarrow = pytest.importorskip("pyarrow")
    kinds = {
        pyarrow.string(): TEXTS,
        pyarrow.int32(): st.integers(-(2**31), 2**31 - 1),
        pyarrow.int64(): st.integers(-(2**63), 2**63 - 1),
        pyarrow.uint64(): st.integers(0, 2**64 - 1),
        pyarrow.float64(): st.floats(allow_nan=False),
        pyarrow.decimal128(20, 3): st.decimals(-(10**15), 10**15, places=3, allow_nan=False),
        pyarrow.timestamp("ns"): st.integers(0, 2**62),
        pyarrow.timestamp("us", "UTC"): st.integers(0, 2**50),
        pyarrow.bool_(): st.booleans(),
        pyarrow.binary(): st.binary(max_size=5),
        pyarrow.list_(pyarrow.int32()): st.lists(st.integers(0, 9), max_size=3),
    }
    names = draw(
        st.lists(NAMES | st.just(""), min_size=1, max_size=6, unique_by=lambda name: name or object())
    )
    number = draw(st.integers(1, 5))
    columns = []
    for name in names:
        kind = (
            pyarrow.string() if "type" in name.lower() or name in KEYS else draw(st.sampled_from(list(kinds)))
        )
        values = st.sampled_from(TYPE_NAMES) if "type" in name.lower() else kinds[kind]
        columns.append(
            pyarrow.array(draw(st.lists(st.none() | values, min_size=number, max_size=number)), kind)
        )
    return pyarrow.Table.from_arrays(columns, names)


@hypothesis.settings(max_examples=of_usual(40))
@given(tables(), st.sampled_from(OnMisfit))
def test_parquet(table, on_misfit):
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    result = read(sink.getvalue(), Wishes(FileFormat.PARQUET), on_misfit)
    seen = set()
    for place, name in enumerate(table.column_names, 1):
        column = name or next(
            it for it in (f"column{place}", f"column{place}_2") if it not in table.column_names
        )
        seen.add(column)
        for line, value in enumerate(table.column(place - 1), 1):
            if value.is_valid:
                text = parquet_text(value)
                account_for(result, line, column, text)
    assert {it.column for it in result.report.columns} <= seen


def parquet_text(value):
    """Return the text of a value, as a reader of the file may write it."""
    import pyarrow

    result = value.as_py() if not pyarrow.types.is_timestamp(value.type) else value.value
    if pyarrow.types.is_timestamp(value.type):
        unit = {"ns": 10**9, "us": 10**6}[value.type.unit]
        seconds, rest = divmod(result, unit)
        digits = f"{rest * 10**9 // unit:09}"
        digits = digits.rstrip("0") if digits.endswith("00") else digits
        return edm.second_text(seconds) + (f".{digits}" if digits else "") + "Z"
    match result:
        case bytes():
            import base64

            return base64.b64encode(result).decode()
        case bool():
            return str(result).lower()
        case float():
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(result, repr(result))
        case Decimal():
            return f"{result:f}"
        case list():
            return json.dumps(result)
    return str(result)
