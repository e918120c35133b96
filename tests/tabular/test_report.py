"""Columns and values that are not plain properties, and the report about them."""

import io
import json
from datetime import UTC, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest

from storage.domain.values import edm
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.input_context import InputContext
from storage.tabular import proposals
from storage.tabular.file import RowFile
from storage.tabular.layout import FileRefused, Wishes
from storage.tabular.mapping import Column, ColumnMapping, MappingRefused, OnMisfit, property_name
from storage.tabular.rejects import Fault, RejectGroups, RejectWriter, Repair, describe, repair
from storage.tabular.report import ColumnUse, FileReport

CONTEXT = InputContext(datetime(2026, 11, 28, tzinfo=UTC))


class Read:
    """The entities, the rejects and the report of a file."""

    def __init__(self, data, mapping=None, *, most=1000, **keys):
        data = data.encode(errors="surrogatepass") if isinstance(data, str) else data
        file = RowFile(lambda: io.BytesIO(data), Wishes())
        self.proposal = file.propose(CONTEXT)
        self.mapping = mapping or proposals.complete(self.proposal, **keys)
        self.mapping.check(self.proposal.names)
        self.chunks = list(file.chunks(self.mapping, CONTEXT, most=lambda: most))
        self.entities = [entity for chunk in self.chunks for _, entity in chunk.entities]
        self.rejects = [reject for chunk in self.chunks for reject in chunk.rejects]
        self.report = FileReport()
        for chunk in self.chunks:
            self.report.add(chunk.report)
        self.layout = file.layout

    @property
    def sentences(self):
        return list(self.report.sentences())

    @property
    def values(self):
        """Return the properties of the entities, without types."""
        return [{name: value.value for name, value in it.properties.items()} for it in self.entities]


# keys


@pytest.mark.parametrize(
    ("header", "key", "properties", "sentences"),
    [
        ("rowkey,RowKey,PartitionKey,partitionkey", ("c", "b"), {"rowkey": "a", "partitionkey": "d"}, []),
        ("Partition Key,row_key,x,RowId", ("a", "b"), {"x": "c", "RowId": "d"},
         ["Partition Key is used as PartitionKey.", "row_key is used as RowKey."]),
        ("PARTITIONKEY,rowkey,row_key,Row.Key", ("a", "b"), {"row_key": "c", "Row_Key": "d"},
         ["PARTITIONKEY is used as PartitionKey.", "rowkey is used as RowKey.",
          "Row.Key becomes the property Row_Key."]),
        ("PartitionKey,RowKey,Timestamp,timestamp", ("a", "b"), {"timestamp": "d"},
         ["Timestamp is left out: the service sets it."]),
    ],
)  # fmt: skip
def test_the_exact_name_is_the_key_and_other_spellings_are_properties(header, key, properties, sentences):
    result = Read(f"{header}\na,b,c,d\n")
    assert result.entities[0].key == key and result.values == [properties]
    assert result.sentences == sentences
    row = dict(zip(header.split(","), "abcd", strict=True))
    result = Read(json.dumps([row]))
    assert result.entities[0].key == key and result.values == [properties]
    assert result.sentences == sentences


def test_columns_named_after_the_keys_are_properties_if_others_are_keys():
    data = "PartitionKey,RowKey,Timestamp,id\np,r,2026-11-28,7\n"
    result = Read(data, partition_key="{id}", row_key="{PartitionKey}-{Timestamp}")
    assert result.entities[0].key == ("7", "p-2026-11-28")
    assert result.values == [{"PartitionKey_2": "p", "RowKey_2": "r"}]
    assert result.sentences == [
        "PartitionKey becomes the property PartitionKey_2.",
        "RowKey becomes the property RowKey_2.",
        "Timestamp is left out: the service sets it.",
    ]
    mapping = ColumnMapping("{id}", "{id}", (Column("Timestamp", "Time"),))
    assert Read(data, mapping).values == [{"Time": "2026-11-28", "PartitionKey_2": "p", "RowKey_2": "r"}]
    for name in ("PartitionKey", "RowKey", "Timestamp"):
        with pytest.raises(MappingRefused, match="cannot be the name"):
            Read(data, ColumnMapping("{id}", "{id}", (Column("RowKey", name),)))


@pytest.mark.parametrize("mark", ["@type", "@Type", "@odata.type", "@OData.Type"])
@pytest.mark.parametrize(
    "spell", [str, str.lower, str.upper, "edm.{}".format, "Edm.{}".format, " {} ".format]
)
def test_a_field_beside_a_value_declares_its_type(mark, spell):
    types = {
        "n": ("Int32", "5", 5), "big": ("Int64", "9007199254740993", 2**53 + 1), "d": ("Double", "100", 100.0),
        "ok": ("Boolean", "true", True), "s": ("String", "5", "5"), "b": ("Binary", "AQID", b"\1\2\3"),
    }  # fmt: skip
    row = {"PartitionKey": "p", "RowKey": "1"}
    for name, (type_, text, _) in types.items():
        row |= {name: text, name + mark: spell(type_)}
    csv = ",".join(row) + "\n" + ",".join(row.values()) + "\n"
    for data in (json.dumps([row]), json.dumps(row) + "\n", csv, parquet_of([row])):
        result = Read(data)
        assert result.values == [{name: value for name, (_, _, value) in types.items()}]
        names = [f"{name}{mark}" for name in types]
        assert result.sentences == [
            f"{', '.join(names[:-1])} and {names[-1]} give the types of other columns."
        ]


def parquet_of(rows):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    return sink.getvalue()


def test_a_type_without_its_value_is_data():
    rows = [{"PartitionKey": "p", "RowKey": "1", "n@type": "Int32", "@type": "Person", "e@mail": "x"}]
    for data in (
        json.dumps(rows),
        parquet_of(rows),
        "PartitionKey,RowKey,n@type,@type,e@mail\np,1,Int32,Person,x\n",
    ):
        result = Read(data)
        assert result.values == [{"n_type": "Int32", "type": "Person", "e_mail": "x"}]
        assert result.sentences == ["n@type becomes the property n_type.", "@type becomes the property type.",
                                   "e@mail becomes the property e_mail."]  # fmt: skip
    # the type column of a value that this row lacks has no effect
    rows = [{"PartitionKey": "p", "RowKey": "1", "n": "5", "n@type": "Int32"},
            {"PartitionKey": "p", "RowKey": "2", "n@type": "Int32"}]  # fmt: skip
    assert Read(json.dumps(rows)).values == [{"n": 5}, {}]


def test_control_information_is_named_once():
    rows = [{"odata.etag": "W", "odata.type": "x", "PartitionKey": "p", "RowKey": str(number), "a": number,
             "b@odata.navigationLink": "b", "c@odata.type": "Edm.Int64", "@odata.context": "y"}
            for number in range(3)]  # fmt: skip
    page = {"odata.metadata": "m", "value": rows, "total": 3}
    result = Read(json.dumps(page), most=1)
    assert result.values == [{"a": 0}, {"a": 1}, {"a": 2}]
    names = "odata.etag, odata.type, b@odata.navigationLink, c@odata.type, @odata.context and odata.metadata"
    assert result.sentences == [
        f"{names} are left out: they are control information of a service.",
        "total is left out: it stands beside the rows, not in them.",
    ]


def test_pages_of_answers_one_after_the_other():
    page = '{"odata.metadata":"x","value":[{"PartitionKey":"p","RowKey":"%d","a@odata.type":"Edm.Double","a":"NaN"}]}'
    result = Read("".join(page % number + "\n" for number in range(3)))
    assert [entity.key.row_key for entity in result.entities] == ["0", "1", "2"] and not result.rejects


# columns without names, and blank rows


def test_columns_without_a_name_get_one():
    result = Read("PartitionKey,RowKey,,column3,,\np,1,x,y,,\np,2,,z,,\n;\n".replace(";", ",,,,,"), most=1)
    assert result.layout.columns == ("PartitionKey", "RowKey", "column3_2", "column3", "column5", "column6")
    assert result.values == [{"column3_2": "x", "column3": "y"}, {"column3": "z"}]
    assert result.sentences == [
        "1 blank row skipped.",
        "A column without a name becomes the property column3_2.",
        "column5 and column6 are left out: they have no names and no values.",
    ]
    # a value behind those that were looked at
    result = Read("PartitionKey,RowKey,\n" + "p,1,\n" * 1500 + "p,2,x\n", most=100)
    assert result.entities[-1].properties == {"column3": EdmValue(Edm.STRING, "x")}
    assert result.sentences == ["A column without a name becomes the property column3."]
    result = Read('[{"PartitionKey":"p","RowKey":"1","":5,"!":6}]')
    assert result.values == [{"unnamed": 5, "unnamed_2": 6}]


def test_blank_rows_are_counted():
    rows = ";;\n" * 3 + "\n" + "PartitionKey;RowKey;a\n" + "p;1;x\n;;\n\np;2;y\n" + ";;\n" * 12
    for most in (1, 2, 1000):
        result = Read(rows, most=most)
        assert len(result.entities) == 2 and result.sentences == ["18 blank rows skipped."]
    result = Read('{"PartitionKey":"p","RowKey":"1"}\n\n \n{"PartitionKey":"p","RowKey":"2"}\n\n')
    assert len(result.entities) == 2 and result.sentences == ["3 blank rows skipped."]


def test_names_that_no_property_can_have():
    result = Read("PartitionKey,RowKey,a b,a_b,a-b,1x," + "y" * 300 + ",²\np,1,a,b,c,d,e,f\n")
    assert result.values == [
        {"a_b_2": "a", "a_b": "b", "a_b_3": "c", "_1x": "d", "y" * 127: "e", "unnamed": "f"}
    ]
    for name in (
        "",
        "!",
        "1",
        "²",
        "Timestamp",
        "Row Key!",
        "RowKey!",
        "a" * 999,
        "🎉" * 300,
        "\0",
        "\ud800",
    ):
        assert (Column(name, property_name(name)),) and ColumnMapping("p", "q", (
            Column(name, property_name(name)),)).check(()) is None  # fmt: skip


def test_a_name_that_another_column_has_is_not_overwritten():
    late = "".join(f'{{"PartitionKey":"p","RowKey":"{n}","a_b":1}}\n' for n in range(1000))
    late += '{"PartitionKey":"p","RowKey":"x","a b":2}\n{"PartitionKey":"p","RowKey":"y","c d":3}\n'
    result = Read(late)
    [reject] = result.rejects
    assert (reject.fault, reject.column, reject.text) == (Fault.NAME_TWICE, "a b", "a_b")
    assert result.values[-1] == {"c_d": 3} and "c d becomes the property c_d." in result.sentences
    mapping = ColumnMapping("{PartitionKey}", "{RowKey}", (Column("a", "b"),))
    [reject] = Read("PartitionKey,RowKey,a,b\np,1,x,y\np,2,x,\n", mapping).rejects
    assert (reject.row.line, reject.column) == (2, "b")
    late = '{"PartitionKey":"p","RowKey":"%d","":1}\n' * 1000 % tuple(range(1000))
    late += '{"PartitionKey":"p","RowKey":"x","":2,"!":3}\n'
    [reject] = Read(late).rejects
    assert (reject.fault, reject.column, reject.text) == (Fault.NAME_TWICE, "!", "unnamed")


# JSON


@pytest.mark.parametrize(
    "members", ['"a":1,"a":2', '"b":{"a":1,"a":2}', '"b":[{"a":1,"c":2,"a":3}]', '"a":null,"a":null']
)
def test_a_member_twice_is_not_the_last_one(members):
    text = f'{{"PartitionKey":"p","RowKey":"1",{members}}}'
    for data in (text, f"{text}\n{text}\n", f"[{text}]", f'{{"value":[{text}]}}'):
        result = Read(data)
        assert not result.entities
        for reject in result.rejects:
            assert (reject.fault, reject.sentence) == (Fault.MEMBER_TWICE, "It has a twice.")
            written = json.loads(RejectWriter(result.layout).write([reject]))
            assert members.replace(" ", "") in written["text"].replace(" ", "")


ROW = '{"PartitionKey":"p","RowKey":"1","x":%s}\n'


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("5", EdmValue(Edm.INT32, 5)),
        ("9007199254740993", EdmValue(Edm.INT64, 9007199254740993)),
        ("1.50", EdmValue(Edm.DOUBLE, 1.5)),
        ("1e3", EdmValue(Edm.DOUBLE, 1000.0)),
        ("0.10000000000000001", EdmValue(Edm.DOUBLE, 0.1)),  # as programs write a Double with 17 digits
        ("0.84551240822557006", EdmValue(Edm.DOUBLE, 0.84551240822557006)),
        ("5e-324", EdmValue(Edm.DOUBLE, 5e-324)),
        ("1" + "0" * 22, EdmValue(Edm.DOUBLE, 1e22)),
        ("0.1000000000000000055511151231257827021181583404541015625", EdmValue(Edm.DOUBLE, 0.1)),
    ],
)
def test_numbers_of_json_that_a_type_holds(number, value):
    [entity] = Read(ROW % number).entities
    assert entity.properties["x"] == value


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        ("123456789012345678901234", "x is a number with more digits than any type holds exactly."),
        ("9223372036854775808", "x is a number with more digits than any type holds exactly."),
        ("1180591620717411303424", "x is a number with more digits than any type holds exactly."),
        ("0.1000000000000000055511", "x is a number with more digits than any type holds exactly."),
        ("9007199254740993.5", "x is a number with more digits than any type holds exactly."),
        ("4e-324", "x is a number with more digits than any type holds exactly."),
        ("1e-400", "x is a number with more digits than any type holds exactly."),
        ("1e400", "x is beyond the range of Double."),
        ("-1e400", "x is beyond the range of Double."),
        ("1" * 400, "x is beyond the range of Double."),
        ("1" * 5000, "x is beyond the range of Double."),
    ],
)
def test_numbers_of_json_that_no_type_holds_are_rejected_and_can_be_strings(number, sentence):
    result = Read(ROW % number)
    [reject] = result.rejects
    assert reject.sentence == sentence and reject.text == number[:80]
    assert f'"x": {number},' in RejectWriter(result.layout).write([reject]).decode()
    groups = RejectGroups()
    groups.add(reject)
    [group] = groups.listed()
    assert group.repairs[0] is Repair.STRING
    result = Read(ROW % number, repair(result.mapping, group, Repair.STRING))
    assert result.values == [{"x": number}]
    assert result.sentences == [f"1 value of x kept as String: not of its type, such as {number[:80]!r}."]
    if Repair.ROUND in group.repairs:
        result = Read(ROW % number, repair(result.mapping, group, Repair.ROUND))
        assert result.values == [{"x": float(number)}]
        assert result.sentences == [f"1 value of x rounded to what its type holds, such as {number!r}."]


@pytest.mark.parametrize("shape", ["json", "text", "csv"])
@pytest.mark.parametrize(
    ("type_", "text", "sentence"),
    [
        ("Double", "9007199254740993", "x has more digits than Double holds."),
        ("Double", "0.1000000000000000055511", "x has more digits than Double holds."),
        ("Double", "123456789012345.123456789012345", "x has more digits than Double holds."),
        ("Double", "1e400", "x is beyond the range of Double."),
        ("Int32", "2147483648", "x is beyond the range of Int32."),
        ("Int64", "9223372036854775808", "x is beyond the range of Int64."),
        ("Int32", "1.5", "x is not of the type Int32."),
        ("DateTime", "2026-11-28T01:02:03.12345678Z", "x has more digits than DateTime holds."),
        ("DateTime", "1600-01-01T00:00:00Z", "x is beyond the range of DateTime."),
        ("DateTime", "now", "x is not of the type DateTime."),
        ("Guid", "x", "x is not of the type Guid."),
        ("Boolean", "5", "x is not of the type Boolean."),
    ],
)
def test_values_beyond_their_type_are_named_with_it(shape, type_, text, sentence):
    value = text if shape == "json" and text[0].isdecimal() and "-" not in text[1:5] else json.dumps(text)
    data = f'{{"PartitionKey":"p","RowKey":"1","x@type":"{type_}","x":{value}}}\n'
    result = Read(f"PartitionKey,RowKey,x,x@type\np,1,{text},{type_}\n" if shape == "csv" else data)
    assert [it.sentence for it in result.rejects] == [sentence]


def test_a_late_number_does_not_become_a_rounded_one():
    rows = [ROW % 1, ROW % 1.5] + [ROW % 2] * 1000 + [ROW % 9007199254740993]
    result = Read("".join(rows))
    assert result.proposal.columns[0].column.type is Edm.DOUBLE
    assert [it.sentence for it in result.rejects] == ["x has more digits than Double holds."]
    result = Read("PartitionKey,RowKey,x\n" + "p,1,1.5\n" * 1000 + "p,2,0.1000000000000000055511\n")
    assert [it.sentence for it in result.rejects] == ["x has more digits than Double holds."]


def test_texts_of_numbers_are_spelled_as_in_the_file():
    data = '{"a":1.50,"b":1e3,"c":{"d":1.10,"e":"ş"},"f":12345678901234567890}\n'
    mapping = ColumnMapping("{a}", "{b}-{f}", (
        Column("a", "a", Edm.STRING), Column("b", "b", Edm.STRING), Column("f", "f", Edm.STRING),
        Column("c", "c", on_misfit=OnMisfit.STRING),
    ))  # fmt: skip
    [entity] = Read(data, mapping).entities
    assert entity.key == ("1.50", "1e3-12345678901234567890")
    assert {name: value.value for name, value in entity.properties.items()} == {
        "a": "1.50", "b": "1e3", "f": "12345678901234567890", "c": '{"d": 1.10, "e": "ş"}',
    }  # fmt: skip
    [reject] = Read('{"a":{"x":1},"b":2}\n', ColumnMapping("{a}", "{b}")).rejects
    assert (reject.fault, reject.column) == (Fault.NESTED, "a")


def test_values_that_the_mapping_leaves_out_are_counted():
    data = "PartitionKey,RowKey,age,n\np,1,n/a,1\np,2,n/a,x\np/q,3,-,2\np,4,5,z\n"
    mapping = ColumnMapping("{PartitionKey}", "{RowKey}", (
        Column("age", "age", Edm.INT32, unset=("n/a", "-")), Column("n", "n", Edm.INT32, OnMisfit.UNSET),
    ), key_replacement="-")  # fmt: skip
    for most in (1, 1000):
        result = Read(data, mapping, most=most)
        assert not result.rejects and result.values == [{"n": 1}, {}, {"n": 2}, {"age": 5}]
        assert result.sentences == [
            "3 values of age left out: the mapping says that they stand for no value, such as 'n/a', '-'.",
            "2 values of n left out: not of its type, such as 'x', 'z'.",
            "1 value of PartitionKey with characters replaced that keys cannot have, such as 'p/q'.",
        ]
    rejected = Read("PartitionKey,RowKey,age,n\np/q,1,n/a,1\n", ColumnMapping(
        "{PartitionKey}", "{RowKey}", (Column("age", "age", Edm.INT32, unset=("n/a",)),)))  # fmt: skip
    assert rejected.rejects and not rejected.report  # the row is named


def test_columns_that_the_mapping_does_not_take():
    data = "PartitionKey,RowKey,a,b,c,d\np,1,x,y,z,\n"
    mapping = ColumnMapping(
        "{PartitionKey}", "{RowKey}", (Column("a", ""), Column("b", "b")), takes_others=False
    )
    assert Read(data, mapping).sentences == [
        "a is left out: the mapping ignores it.",
        "c and d are left out: the mapping does not list them.",
    ]


def test_every_reason_is_a_whole_sentence():
    for fault in Fault:
        for column, type_ in (("x", Edm.INT32), ("", None)):
            sentence = describe(fault, column, type_, "text", "day-first" if column else "")
            assert "  " not in sentence and " ." not in sentence and not sentence.startswith(" ")


def test_a_report_has_bounds():
    report = FileReport()
    for number in range(5000):
        report.add_column(f"c {number}", ColumnUse.RENAMED, f"c_{number}")
    assert len(report.columns) == 1001
    assert FileReport.load(json.loads(json.dumps(report.dump()))) == report


def test_excess_fields_are_kept_in_the_rejects():
    result = Read('PartitionKey,RowKey\np,1,x,"y,z"\n"p\nq"r,2\n')
    head, *lines = (RejectWriter(result.layout).write(result.rejects)).decode().splitlines()
    assert head.startswith("p,1,2,") and head.endswith(',x,"y,z"')
    assert "".join(lines).startswith('"""p') and 'q""r,2' in "".join(lines)


def test_values_of_parquet_that_have_no_type_of_the_service():
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def read(kind, *values, **options):
        rows = {"PartitionKey": ["p"] * len(values), "RowKey": [str(number) for number in range(len(values))]}
        sink = io.BytesIO()
        parquet.write_table(arrow.table({**rows, "x": arrow.array(values, kind)}), sink, **options)
        return Read(sink.getvalue())

    texts = read(arrow.decimal256(50, 1), Decimal("123456789012345678901234567890.5"), None)
    assert texts.values == [{"x": "123456789012345678901234567890.5"}, {}]
    assert read(arrow.time64("us"), time(1, 2, 3, 4)).values == [{"x": "01:02:03.000004"}]
    durations = read(arrow.duration("ns"), 93_600_000_000_001, -1_500_000_000)
    assert durations.values == [{"x": "26:00:00.000000001"}, {"x": "-00:00:01.5"}]
    assert read(arrow.binary_view(), b"\0").entities[0].properties["x"] == EdmValue(Edm.BINARY, b"\0")
    result = read(arrow.timestamp("ns"), 1_700_000_000_123_456_700, 1_700_000_000_123_456_789)
    assert [it.sentence for it in result.rejects] == ["x has more digits than DateTime holds."]
    assert result.rejects[0].text == "2023-11-14T22:13:20.123456789Z"
    [reject] = read(arrow.list_(arrow.binary()), [b"x"]).rejects
    assert (reject.fault, reject.text) == (Fault.NESTED, '["eA=="]')
    identifier = UUID(int=5)
    storage = arrow.array([identifier.bytes, None], arrow.binary(16))
    column = arrow.ExtensionArray.from_storage(arrow.uuid(), storage)
    sink = io.BytesIO()
    parquet.write_table(arrow.table({"PartitionKey": ["p", "p"], "RowKey": ["1", "2"], "x": column}), sink)
    assert Read(sink.getvalue()).values == [{"x": str(identifier)}, {}]
    # times in 96 bits overflow as nanoseconds
    years = [datetime(year, 1, 2, 3, 4, 5, 6, tzinfo=UTC) for year in (1601, 1970, 2026, 9999)]
    result = read(arrow.timestamp("us"), *years, None, use_deprecated_int96_timestamps=True)
    assert [edm.write_datetime(it["x"]) for it in result.values if it] == [
        year.isoformat().replace("+00:00", "Z") for year in years
    ]
    sink = io.BytesIO()
    twice = arrow.Table.from_arrays([arrow.array(["1"])] * 4, ["PartitionKey", "RowKey", "x", "x"])
    parquet.write_table(twice, sink)
    with pytest.raises(FileRefused, match="two columns named x"):
        Read(sink.getvalue())
