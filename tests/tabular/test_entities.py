"""Rows become entities: keys, types, what is empty, and why a row is rejected and what would help."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from storage.domain.values import encoding
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.editing.guessing import GuessReason
from storage.editing.input_context import InputContext
from storage.tabular import proposals
from storage.tabular.file import RowFile
from storage.tabular.layout import Wishes
from storage.tabular.mapping import Column, ColumnMapping, Empty, MappingRefused, OnMisfit
from storage.tabular.rejects import Fault, RejectGroup, RejectGroups, RejectWriter, Repair, repair
from storage.tabular.report import FileReport, ValueChange

NOW = datetime(2026, 11, 26, tzinfo=UTC)
CONTEXT = InputContext(NOW)


def file_of(data):
    data = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    return RowFile(lambda: io.BytesIO(data), Wishes())


def convert(data, mapping=None, kind=AccountKind.STORAGE, **keys):
    """Return the entities and rejects of a file, and its mapping."""
    file = file_of(data)
    mapping = mapping or proposals.complete(file.propose(CONTEXT), **keys)
    chunks = list(file.chunks(mapping, InputContext(NOW, kind)))
    entities = [entity for chunk in chunks for _, entity in chunk.entities]
    return entities, [reject for chunk in chunks for reject in chunk.rejects], mapping


def test_guesses_lose_nothing_and_say_why():
    data = (
        "PartitionKey,RowKey,zip,big,huge,ratio,exact,day,at,ok,id,mixed,none\n"
        "p,1,007,9007199254740993,92233720368547758080,1.50,0.1000000000000000055511,2026-11-26,"
        "2026-11-26T01:02:03.1234567Z,true,c9da6455-213d-42c9-9a79-3e9149a57833,1,\n"
        "p,2,17,1,1,1e400,0.5,2026-11-27,2026-11-26T01:02:03+02:00,False,C9DA6455-213D-42C9-9A79-3E9149A57834,x,\n"
    )
    proposal = file_of(data).propose(CONTEXT)
    assert {it.column.target: (it.column.type, it.reason) for it in proposal.columns} == {
        "zip": (Edm.STRING, GuessReason.LEADING_ZEROS),
        "big": (Edm.INT64, GuessReason.FITS),
        "huge": (Edm.STRING, GuessReason.TOO_MANY_DIGITS),
        "ratio": (Edm.STRING, GuessReason.TOO_MANY_DIGITS),
        "exact": (Edm.STRING, GuessReason.TOO_MANY_DIGITS),
        "day": (Edm.STRING, GuessReason.NO_ZONE),
        "at": (Edm.DATETIME, GuessReason.FITS),
        "ok": (Edm.BOOLEAN, GuessReason.FITS),
        "id": (Edm.GUID, GuessReason.FITS),
        "mixed": (Edm.STRING, GuessReason.MIXED),
        "none": (Edm.STRING, GuessReason.EMPTY),
    }
    [first, second], rejects, _ = convert(data)
    assert not rejects and "none" not in first.properties
    assert first.properties["at"] == EdmValue(Edm.DATETIME, 17_956_549_231_234_567)
    assert second.properties["at"] == EdmValue(Edm.DATETIME, 17_956_477_230_000_000)
    assert (first.properties["zip"].value, second.properties["id"].value[-4:]) == ("007", "7834")


def test_the_types_of_storage_explorer_and_what_is_absent():
    data = (
        "PartitionKey,RowKey,Timestamp,A,A@type,B,B@type\n"
        "p,1,2026-01-01T00:00:00Z,,String,5,Edm.Int64\n"
        "p,2,2026-01-01T00:00:00Z,,,6,\n"  # the type of a column whose type is missing is the last one
        "p,3,2026-01-01T00:00:00Z,AP8=,binary,x,Edm.Int32\n"
        "p,4,2026-01-01T00:00:00Z,x,Edm.GeographyPoint,,Int32\n"
    )
    entities, rejects, _ = convert(data)
    assert [dict(entity.properties) for entity in entities] == [
        {"A": EdmValue(Edm.STRING, ""), "B": EdmValue(Edm.INT64, 5)},
        {"B": EdmValue(Edm.INT64, 6)},
    ]
    assert [(it.row.line, it.fault, it.column, it.text) for it in rejects] == [
        (4, Fault.NOT_OF_TYPE, "B", "x"),
        (5, Fault.UNKNOWN_TYPE, "A", "Edm.GeographyPoint"),
    ]


def test_json_keeps_what_it_says():
    rows = [
        {"PartitionKey": "p", "RowKey": "1", "N": 2**53 + 1, "D": 1.0, "I": 1, "T@odata.type": "Edm.DateTime",
         "T": "2026-11-26T00:00:00Z", "Null": None, "Timestamp": "x", "odata.etag": "W"},
        {"PartitionKey": "p", "RowKey": "2", "N": 1, "D": 1, "I": 2},
        {"PartitionKey": "p", "RowKey": "3", "Deep": {"a": [1]}},
        {"PartitionKey": "p", "RowKey": 4, "Not a name": 1, "@x": 2},
    ]  # fmt: skip
    entities, rejects, mapping = convert("\n".join(map(json.dumps, rows)))
    assert [dict(entity.properties) for entity in entities] == [
        {"N": EdmValue(Edm.INT64, 2**53 + 1), "D": EdmValue(Edm.DOUBLE, 1.0), "I": EdmValue(Edm.INT32, 1),
         "T": EdmValue(Edm.DATETIME, 17_956_512_000_000_000)},
        {"N": EdmValue(Edm.INT64, 1), "D": EdmValue(Edm.DOUBLE, 1.0), "I": EdmValue(Edm.INT32, 2)},
        {"Not_a_name": EdmValue(Edm.INT32, 1), "x": EdmValue(Edm.INT32, 2)},
    ]  # fmt: skip
    assert entities[2].key.row_key == "4"
    assert [(it.fault, it.column) for it in rejects] == [(Fault.NESTED, "Deep")]
    mapping = repair(mapping, grouped(rejects)[0], Repair.STRING)
    [deep] = [it for it in convert("\n".join(map(json.dumps, rows)), mapping)[0] if it.key.row_key == "3"]
    assert deep.properties["Deep"] == EdmValue(Edm.STRING, '{"a": [1]}')


def grouped(rejects):
    groups = RejectGroups()
    for reject in rejects:
        groups.add(reject)
    return groups.listed()


PEOPLE = "tenant,id,age,note\nse,1,36,x\ntr,2/3,n/a,\nde,3,4x,y\n,4,5,z\n"


def test_keys_are_composed_and_repairs_bring_rows_in():
    keys = {"partition_key": "{tenant}", "row_key": "{tenant}-{id}"}
    mapping = proposals.complete(file_of(PEOPLE).propose(CONTEXT), **keys)
    mapping = mapping.with_column(Column("age", "Age", Edm.INT32))
    entities, rejects, _ = convert(PEOPLE, mapping)
    assert [entity.key for entity in entities] == [("se", "se-1"), ("", "-4")]
    assert dict(entities[0].properties) == {
        "id": EdmValue(Edm.STRING, "1"), "Age": EdmValue(Edm.INT32, 36), "note": EdmValue(Edm.STRING, "x"),
    }  # fmt: skip
    characters, age = grouped(rejects)
    assert (characters.fault, characters.repairs) == (Fault.KEY_CHARACTERS, (Repair.KEY_CHARACTERS,))
    assert (age.sentence, age.lines, age.texts) == ("age is not of the type Int32.", [4], {"4x": 1})
    assert RejectGroup.load(json.loads(json.dumps(age.dump()))) == age

    mapping = repair(repair(mapping, characters, Repair.KEY_CHARACTERS), age, Repair.UNSET)
    entities, rejects, _ = convert(PEOPLE, ColumnMapping.load(json.loads(json.dumps(mapping.dump()))))
    assert not rejects and [entity.key.row_key for entity in entities] == ["se-1", "tr-2-3", "de-3", "-4"]
    assert ["Age" in entity.properties for entity in entities] == [True, False, False, True]
    as_text = mapping.with_column(Column("age", "Age", Edm.INT32, OnMisfit.STRING, ("n/a",)))
    values = [entity.properties.get("Age") for entity in convert(PEOPLE, as_text)[0]]
    assert values[1:3] == [None, EdmValue(Edm.STRING, "4x")]


def test_a_column_whose_later_numbers_are_of_a_wider_type_gets_it():
    text = "PartitionKey,RowKey,i,j,k,t\n" + "".join(f"p,{row},1,1,1,1\n" for row in range(1000))
    text += "p,x,3000000000,2.5,99999999999999999999,1\np,y,-2147483649,1e3,3000000000,n/a\n"
    entities, rejects, mapping = convert(text)
    assert len(entities) == 1000 and {it.type for it in entities[0].properties.values()} == {Edm.INT32}
    offers = {}
    while rejects:
        group = next(it for it in grouped(rejects) if it.column not in offers)
        offers[group.column] = group.repairs
        mapping = repair(mapping, group, group.repairs[0])
        entities, rejects, _ = convert(text, mapping)
    assert offers == {
        "i": (Repair.INT64, Repair.STRING, Repair.UNSET),
        "j": (Repair.DOUBLE, Repair.STRING, Repair.UNSET),
        "k": (Repair.STRING, Repair.UNSET),  # one of the numbers is beyond Int64
        "t": (Repair.STRING, Repair.UNSET),
    }
    names = [[it.type.short_name for it in entity.properties.values()] for entity in entities]
    assert names[0] == ["Int64", "Double", "Int32", "Int32"]
    assert names[1000:] == [["Int64", "Double", "String", "Int32"], ["Int64", "Double", "String", "String"]]


@pytest.mark.parametrize(
    ("text", "type_", "reason"),
    [
        ("2026-01-02 03:04:05+00:00", Edm.DATETIME, GuessReason.FITS),  # pandas
        ("2026-01-02 03:04:05.678901+00", Edm.DATETIME, GuessReason.FITS),  # PostgreSQL
        ("2026-01-02 03:04:05.000000+0530", Edm.DATETIME, GuessReason.FITS),  # Cassandra
        ("2026-01-02 03:04:05Z", Edm.DATETIME, GuessReason.FITS),
        ("2026-01-02 03:04:05 UTC", Edm.STRING, GuessReason.TEXT),  # BigQuery; a format reads it
        ("2026-01-02 03:04:05", Edm.STRING, GuessReason.NO_ZONE),
        ("2026-01-02", Edm.STRING, GuessReason.NO_ZONE),
    ],
)
def test_times_with_a_zone_have_one(text, type_, reason):
    proposal = file_of(f"PartitionKey,RowKey,at\np,1,{text}\n").propose(CONTEXT)
    [column] = proposal.columns
    assert (column.column.type, column.reason) == (type_, reason)
    [entity], _, _ = convert(f"PartitionKey,RowKey,at\np,1,{text}\n")
    if type_ is Edm.DATETIME:
        instant = datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
        assert encoding.write(entity.properties["at"]) == f'"{instant.isoformat()}Z"'


def test_a_type_beside_a_value_that_the_row_lacks_is_no_property():
    rows = [
        {"PartitionKey": "p", "RowKey": "1", "n": 5},
        {"PartitionKey": "p", "RowKey": "2", "n@type": "Int64"},
    ]
    entities, _, _ = convert("\n".join(map(json.dumps, rows)))
    assert [dict(it.properties) for it in entities] == [{"n": EdmValue(Edm.INT32, 5)}, {}]


def test_later_numbers_of_other_types_are_reported():
    """JSON has one type of numbers: what the first rows do not show changes the type of a column halfway."""
    rows = [
        {"PartitionKey": "p", "RowKey": str(row), "n": row, "f": 0.5, "t@type": "Int64", "t": "5"}
        for row in range(1000)
    ]
    rows += [{"n": 2.5, "f": 7, "t": 1}, {"n": 3_000_000_000, "f": 1e400}, {"n": 1.5}, {"n": "x", "f": True}]
    for number, row in enumerate(rows[1000:]):
        row |= {"PartitionKey": "q", "RowKey": str(number)}
    text = "\n".join(json.dumps(it).replace("Infinity", "0.25") for it in rows)
    file = file_of(text)
    proposal = file.propose(CONTEXT)
    mapping = proposal.mapping

    def report_of(mapping):
        report = FileReport()
        for chunk in file.chunks(mapping, CONTEXT):
            assert not chunk.rejects
            report.add(chunk.report)
        return {(it.column, it.change, it.number, tuple(it.examples)) for it in report.values}

    assert report_of(mapping) == {
        ("n", ValueChange.OTHER_TYPE, 3, ("2.5", "3000000000", "1.5")),
        ("f", ValueChange.OTHER_TYPE, 1, ("7",)),
    }
    typed = mapping
    for name, type_ in (("n", Edm.DOUBLE), ("f", Edm.DOUBLE)):
        typed = typed.with_column(replace(typed.column(name), type=type_, on_misfit=OnMisfit.STRING))
    assert {change for _, change, _, _ in report_of(typed)} == {ValueChange.STRING}


def test_keys_of_numbers_and_guids():
    entities, _, _ = convert("a\nx\ny\n", partition_key="{{k}}", row_key="{#row}")
    assert [entity.key for entity in entities] == [("{k}", "0000000001"), ("{k}", "0000000002")]
    entities, _, _ = convert("a\nx\ny\n", partition_key="p", row_key="{#guid}")
    assert len({entity.key.row_key for entity in entities}) == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"partition_key": "{nothing}"}, "no column nothing"),
        ({"row_key": "{a"}, "not a template"),
        ({"columns": [{"source": "age", "target": "1x"}]}, "cannot be the name"),
        ({"columns": [{"source": "age", "target": "x"}, {"source": "note", "target": "x"}]}, "property x"),
        ({"columns": [{"source": "age", "target": "x", "type": "Int16"}]}, "Int16"),
        ({"colour": "red"}, "not a mapping: 'colour' is not one of partition_key"),
        ({"unescapes_formulas": "no"}, "unescapes_formulas must be true or false"),
        ({"takes_others": 1}, "takes_others must be true or false"),
        ({"columns": 5}, "columns must be a list"),
        ({"columns": ["n"]}, "a column must be an object with its source"),
        ({"columns": [{"source": "id", "kind": "x"}]}, "'kind' is not one of source"),
    ],
)
def test_refuses_mappings_that_do_not_fit(change, why):
    def load():
        mapping = ColumnMapping.load({"partition_key": "{tenant}", "row_key": "{id}", **change})
        mapping.check(("tenant", "id", "age", "note"))

    with pytest.raises(MappingRefused, match=why):
        load()


def test_a_file_without_keys_says_what_it_has():
    with pytest.raises(MappingRefused, match="tenant, id, age, note"):
        convert(PEOPLE)


def test_limits_are_those_of_the_kind_of_account():
    long = "x" * 40_000
    data = f"PartitionKey,RowKey,T\np,1,{long}\n,2,y\n{'p' * 1025},3,y\n"
    entities, rejects, _ = convert(data)
    assert [it.fault for it in rejects] == [Fault.VALUE_LARGE, Fault.KEY_LONG] and len(entities) == 1
    entities, rejects, _ = convert(data, kind=AccountKind.COSMOS)
    assert [it.fault for it in rejects] == [Fault.KEY_EMPTY] and len(entities) == 2
    many = {"PartitionKey": "p", "RowKey": "1", **{f"P{number}": number for number in range(253)}}
    assert [it.fault for it in convert(json.dumps(many) + "\n")[1]] == [Fault.MANY_PROPERTIES]


def test_empty_strings_if_they_are_wanted():
    mapping = ColumnMapping("{tenant}", "{id}", (Column("note", "note", Edm.STRING),), empty=Empty.STRING)
    assert [dict(it.properties).get("note") for it in convert("tenant,id,note\na,1,\n", mapping)[0]] == [
        EdmValue(Edm.STRING, "")
    ]


@pytest.mark.parametrize("data", [PEOPLE, '{"id":"1/2"}\n[]\n{\n{"id":"3"}\n'])
def test_rejects_can_be_corrected_and_imported(data):
    keys = {"partition_key": "p", "row_key": "{id}"}
    _first, rejects, _ = convert(data, **keys)
    writer = RejectWriter(file_of(data).layout)
    text = (writer.head() + writer.write(rejects)).decode()
    assert "reject:reason" in text and "has a character that keys cannot have" in text
    again, _, _ = convert(text.replace("2/3", "2").replace("1/2", "12"), **keys)
    assert again[0].key.row_key in ("2", "12")
    assert all("reject" not in name for name in again[0].properties)


def test_times_without_a_zone_get_the_one_of_the_mapping():
    data = (
        "PartitionKey,RowKey,day,at,instant\n"
        "p,1,2026-01-15,2026-07-15 14:30,2026-01-15T12:00:00Z\n"
        "p,2,2026-07-15,2026-07-15T14:30:00.1234567,2026-01-15T12:00:00+03:00\n"
    )
    file = file_of(data)
    proposal = file.propose(CONTEXT)
    plain = proposals.complete(proposal)
    assert {plain.column(it).type for it in ("day", "at")} == {Edm.STRING}
    zoned = proposals.in_zone(proposal, plain, "Europe/Stockholm")
    assert {zoned.column(it).type for it in ("day", "at", "instant")} == {Edm.DATETIME}
    assert ColumnMapping.load(json.loads(json.dumps(zoned.dump()))) == zoned
    assert proposals.in_zone(proposal, zoned, "") == plain

    def texts(entity):
        return [encoding.write(entity.properties[it]).strip('"') for it in ("day", "at", "instant")]

    [first, second], rejects, _ = convert(data, zoned)
    assert not rejects
    # winter and summer differ; a zone in the text wins, also for columns that are read value by value
    assert texts(first) == ["2026-01-14T23:00:00Z", "2026-07-15T12:30:00Z", "2026-01-15T12:00:00Z"]
    assert texts(second) == ["2026-07-14T22:00:00Z", "2026-07-15T12:30:00.1234567Z", "2026-01-15T09:00:00Z"]
    slowly = replace(zoned, columns=(*zoned.columns, Column("RowKey", "n", Edm.INT64, OnMisfit.STRING)))
    assert [texts(it) for it in convert(data, slowly)[0]] == [texts(first), texts(second)]
    _, [reject], _ = convert(data.replace("2026-07-15 14:30", "now"), zoned)
    assert (reject.fault, reject.column) == (Fault.NOT_OF_TYPE, "at")
    utc = replace(zoned, zone="")
    assert texts(convert(data, utc)[0][0])[1] == "2026-07-15T14:30:00Z"
    for wrong in ("Europe/Nowhere", "../etc/passwd", "/etc/passwd", "a\0b"):
        with pytest.raises(MappingRefused, match="not a time zone"):
            replace(zoned, zone=wrong).check(())
