"""Texts of columns with a format become values of their type, exactly; others are rejected, and say the format."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from storage.domain.values import encoding
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.input_context import InputContext
from storage.tabular.file import RowFile
from storage.tabular.layout import Wishes
from storage.tabular.mapping import Column, ColumnMapping, Empty, MappingRefused, OnMisfit
from storage.tabular.rejects import Fault, Reject, RejectGroup, RejectGroups, Repair, repair

CONTEXT = InputContext(datetime(2026, 11, 26, tzinfo=UTC))
KEYS = {"partition_key": "{Filiale}", "row_key": "{Beleg}"}
GERMAN = """Filiale;Beleg;Betrag;Menge;Datum;Aktiv
Köln;1001;1.234,56;1.200;28.11.2026;WAHR
Köln;1002;99,90;3;01.12.2026;FALSCH
Aachen;1003;-0,5;;15.07.2027 13:45;wahr
"""
COLUMNS = [
    {"source": "Betrag", "format": "decimal-comma"},
    {"source": "Menge", "format": "decimal-comma", "type": "Int32"},
    {"source": "Datum", "format": "dd.MM.yyyy"},
    {"source": "Aktiv", "format": "WAHR/FALSCH"},
]


def convert(text, mapping):
    file = RowFile(lambda: io.BytesIO(text.encode()), Wishes())
    chunks = list(file.chunks(mapping, CONTEXT))
    entities = [dict(entity.properties) for chunk in chunks for _, entity in chunk.entities]
    return entities, [reject for chunk in chunks for reject in chunk.rejects]


def load(columns, **more):
    return ColumnMapping.load({**KEYS, "columns": columns, **more})


def written(entity):
    return {name: encoding.write(value).strip('"') for name, value in entity.items()}


def test_values_have_their_types_and_every_digit():
    entities, rejects = convert(GERMAN, load(COLUMNS))
    assert not rejects
    assert entities[0]["Betrag"] == EdmValue(Edm.DOUBLE, 1234.56)
    assert entities[0]["Menge"] == EdmValue(Edm.INT32, 1200)
    assert entities[1]["Aktiv"] == EdmValue(Edm.BOOLEAN, False)
    assert [written(entity)["Datum"] for entity in entities] == [
        "2026-11-28T00:00:00Z",  # a date is midnight of UTC
        "2026-12-01T00:00:00Z",
        "2027-07-15T13:45:00Z",
    ]
    assert "Menge" not in entities[2]
    # value by value they are the same
    slowly = [*COLUMNS, {"source": "Beleg", "type": "Guid", "target": "G", "on_misfit": "unset"}]
    assert convert(GERMAN, load(slowly)) == (entities, [])
    zoned, _ = convert(GERMAN, load(COLUMNS, zone="Europe/Berlin"))
    assert written(zoned[0])["Datum"] == "2026-11-27T23:00:00Z"
    assert written(zoned[2])["Datum"] == "2027-07-15T11:45:00Z"
    assert convert(GERMAN, load(slowly, zone="Europe/Berlin")) == (zoned, [])


def test_misfits_are_rejected_with_the_format_or_repaired():
    text = GERMAN + "Bonn;1;1,234.5;1,5;13/45/2026;x\nBonn;2;1;;13/45/2026;\nBonn;3;1;2,5;;\n"
    mapping = load(COLUMNS)
    entities, rejects = convert(text, mapping)
    assert len(entities) == 3
    assert [(it.fault, it.column, it.text, it.sentence) for it in rejects] == [
        (Fault.NOT_IN_FORMAT, "Betrag", "1,234.5", "Betrag is not a number with a decimal comma."),
        (Fault.NOT_IN_FORMAT, "Datum", "13/45/2026", "Datum is not a date, day first."),
        (Fault.NOT_OF_TYPE, "Menge", "2,5", "Menge is not of the type Int32."),
    ]
    groups = RejectGroups()
    for reject in rejects:
        groups.add(reject)
    for group in groups.listed():
        assert RejectGroup.load(json.loads(json.dumps(group.dump()))) == group
        mapping = repair(mapping, group, Repair.STRING)
    mapping = mapping.with_column(replace(mapping.column("Aktiv"), on_misfit=OnMisfit.UNSET))
    entities, rejects = convert(text, mapping)
    assert not rejects
    assert entities[3]["Betrag"] == EdmValue(Edm.STRING, "1,234.5")  # as it was
    assert "Aktiv" not in entities[3] and entities[4]["Datum"] == EdmValue(Edm.STRING, "13/45/2026")


def test_groups_of_an_older_version_have_no_format():
    dumped = RejectGroup(Fault.NOT_OF_TYPE, "age", Edm.INT32, 1, [4]).dump()
    del dumped["format"]
    assert RejectGroup.load(dumped).sentence == "age is not of the type Int32."


def test_numbers_of_types_that_are_not_texts():
    rows = [{"Filiale": "a", "Beleg": "1", "at": 1795824000, "on": 46354.5, "n": "1.234,5", "u": True}]
    columns = [
        {"source": "at", "format": "epoch-seconds"},
        {"source": "on", "format": "excel-days"},
        {"source": "n", "format": "decimal-comma"},
    ]
    [entity], _ = convert(json.dumps(rows), load(columns))
    assert written(entity) == {
        "at": "2026-11-28T00:00:00Z", "on": "2026-11-28T12:00:00Z", "n": "1234.5", "u": "true",
    }  # fmt: skip
    nested = json.dumps([{**rows[0], "n": [1]}])
    [reject] = convert(nested, load(columns))[1]
    assert (reject.fault, reject.column) == (Fault.NESTED, "n")


def test_texts_that_are_no_value_and_formulas_come_first():
    column = Column("v", "v", Edm.DOUBLE, unset=("n/a",), format="decimal-comma")
    mapping = ColumnMapping("{k}", "{k}", (column,), empty=Empty.STRING, unescapes_formulas=True)
    entities, rejects = convert("k;v\n1;n/a\n2;'-5,5\n3;\n", mapping)
    assert (entities, rejects) == ([{}, {"v": EdmValue(Edm.DOUBLE, -5.5)}, {}], [])


def test_a_format_is_kept_and_says_the_type():
    mapping = load(
        [{"source": "a", "format": "dd.MM.yyyy"}, {"source": "b", "format": "comma", "type": "Int64"}]
    )
    assert [(it.type, it.format) for it in mapping.columns] == [
        (Edm.DATETIME, "day-first"),
        (Edm.INT64, "decimal-comma"),
    ]
    assert ColumnMapping.load(json.loads(json.dumps(mapping.dump()))) == mapping
    old = mapping.dump()
    for column in old["columns"]:
        del column["format"]
    assert {it.format for it in ColumnMapping.load(old).columns} == {""}


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ({"format": "klingon"}, "'klingon' is not a format such as"),
        ({"format": "day-first", "type": "Int32"}, "become DateTime, not Int32"),
        ({"format": 5}, "format must be a text"),
    ],
)
def test_refuses_formats_that_there_are_not(column, why):
    with pytest.raises(MappingRefused, match=why):
        load([{"source": "a", **column}])


def test_a_reject_without_a_format_is_as_before():
    assert Reject(None, Fault.NOT_OF_TYPE, "age", Edm.INT32, "x").sentence == "age is not of the type Int32."
