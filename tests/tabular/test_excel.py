"""Excel files: types of cells, sheets, damage, bombs, and a round trip without loss."""

import io
import zipfile
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import hypothesis
import pytest
from hypothesis import given

from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.refusals import Reason
from storage.domain.values.edm import Edm, EdmValue, read_datetime
from storage.editing.input_context import InputContext
from storage.tabular import excel, proposals
from storage.tabular.file import RowFile
from storage.tabular.layout import FileFormat, FileRefused, Wishes
from storage.tabular.mapping import OnMisfit
from storage.tabular.rejects import Fault, RejectWriter
from storage.tabular.report import ValueChange
from storage.tabular.writing import UnexpectedProperty
from tests.domain.test_edm import same
from tests.examples import of_usual
from tests.tabular.test_round_trip import check, entities, stored

openpyxl = pytest.importorskip("openpyxl")
CONTEXT = InputContext(datetime(2026, 11, 28, tzinfo=UTC))


def workbook_of(*rows, **others):
    """Return a workbook with a sheet of rows, and others by name."""
    workbook = openpyxl.Workbook()
    workbook.active.title = "First"
    for row in rows:
        workbook.active.append(row)
    for name, its in others.items():
        sheet = workbook.create_sheet(name)
        for row in its:
            sheet.append(row)
    sink = io.BytesIO()
    workbook.save(sink)
    return sink.getvalue()


def open_file(data, **wishes):
    return RowFile(lambda: io.BytesIO(data), Wishes(**wishes))


def read(data, **wishes):
    """Return the chunk of a workbook with the proposed mapping."""
    file = open_file(data, **wishes)
    proposal = file.propose(CONTEXT)
    mapping = proposals.complete(proposal, proposal.mapping.partition_key, proposal.mapping.row_key)
    [chunk] = file.chunks(mapping, CONTEXT)
    return chunk


def reason_of(data, **wishes):
    with pytest.raises(FileRefused) as refused:
        list(open_file(data, **wishes).sample().rows)
    return refused.value.refusal.reason


SHEET = "xl/worksheets/sheet1.xml"
HEAD = ("PartitionKey", "RowKey", "Name", "Amount", "Since", "Day", "At", "Active", "Zip", "Size")


def test_cells_have_their_types():
    moment = datetime.fromisoformat("2026-03-28 15:21")
    row = ("Köln", "KD-1", "Müller", 5442.2, moment, date(2026, 3, 28), time(9, 30), True, "01234", 2**40)
    file = open_file(workbook_of(HEAD, row))
    assert (file.layout.format, file.layout.sheets) == (FileFormat.EXCEL, ("First",))
    chunk = read(workbook_of(HEAD, row))
    [(line, entity)] = [(row.line, entity) for row, entity in chunk.entities]
    assert (line, entity.key) == (2, EntityKey("Köln", "KD-1"))
    assert entity.properties == {
        "Name": EdmValue(Edm.STRING, "Müller"),
        "Amount": EdmValue(Edm.DOUBLE, 5442.2),
        "Since": EdmValue(Edm.DATETIME, read_datetime("2026-03-28T15:21:00Z")),
        "Day": EdmValue(Edm.DATETIME, read_datetime("2026-03-28T00:00:00Z")),
        "At": EdmValue(Edm.STRING, "09:30:00"),
        "Active": EdmValue(Edm.BOOLEAN, True),
        "Zip": EdmValue(Edm.STRING, "01234"),
        "Size": EdmValue(Edm.INT64, 2**40),
    }


def test_only_columns_that_suit_keys_are_proposed():
    head = ("Active", "City", "Customer no", "Amount")
    rows = [(number % 2 == 0, f"c{number % 3}", f"K{number}", number / 4) for number in range(30)]
    proposal = open_file(workbook_of(head, *rows)).propose(CONTEXT)
    assert {it.partition_key for it in proposal.keys.proposals} == {"{City}"}
    assert proposals.with_likely_keys(proposal).row_key == "{Customer no}"


def test_times_are_in_the_zone_of_the_mapping():
    data = workbook_of(("PartitionKey", "RowKey", "At"), ("p", 1, datetime.fromisoformat("2026-07-01 12:00")))
    file = open_file(data)
    mapping = proposals.in_zone(file.propose(CONTEXT), file.propose(CONTEXT).mapping, "Europe/Istanbul")
    [chunk] = file.chunks(mapping, CONTEXT)
    expected = EdmValue(Edm.DATETIME, read_datetime("2026-07-01T09:00:00Z"))
    assert chunk.entities[0][1].properties == {"At": expected}


def test_blank_rows_are_counted_and_long_ones_do_not_fit():
    chunk = read(workbook_of((), HEAD[:3], ("p", 1, "a"), (), (), ("p", 2, "b", "more"), ("p", 3, None)))
    assert chunk.report.blank_rows == 2
    assert [entity.key.row_key for _, entity in chunk.entities] == ["1", "3"]
    [reject] = chunk.rejects
    assert (reject.fault, reject.row.line, reject.row.further) == (Fault.TOO_MANY_FIELDS, 6, ("more",))


def test_a_sheet_is_chosen_and_a_formula_has_its_stored_value():
    data = workbook_of(("a", "b"), (1, 2), Second=[HEAD[:3], ("p", "1", "x")])
    file = open_file(data)
    assert (file.layout.sheet, file.layout.sheets) == ("First", ("First", "Second"))
    assert open_file(data, sheet="Second").propose(CONTEXT).names == HEAD[:3]
    assert reason_of(data, sheet="Third") is Reason.FILE_ROWS_NO_SHEET
    with_formula = change(data, "xl/worksheets/sheet1.xml", b"<v>2</v>", b"<f>A2+1</f><v>2</v>")
    assert [row.fields for row in open_file(with_formula).sample().rows] == [{"a": 1, "b": 2}]


def test_a_formula_without_a_stored_value_does_not_fit():
    rows = ("p", "1", "=B2&1", "=1+1"), ("p", "=B2&1", 5, None)
    file = open_file(workbook_of((*HEAD[:3], "Total"), *rows))
    mapping = file.propose(CONTEXT).mapping
    [chunk] = file.chunks(mapping, CONTEXT)
    misfits = [(it.row.line, it.fault, it.column, it.text) for it in chunk.rejects]
    assert misfits == [(2, Fault.NOT_COMPUTED, "Name", "=B2&1"), (3, Fault.NOT_COMPUTED, "RowKey", "=B2&1")]
    assert b'"Total": "=1+1"' in RejectWriter(file.layout).write(chunk.rejects)
    as_it_likes = {"Name": OnMisfit.STRING, "Total": OnMisfit.UNSET}
    columns = (replace(it, on_misfit=as_it_likes[it.source]) for it in mapping.columns)
    [chunk] = file.chunks(replace(mapping, columns=tuple(columns)), CONTEXT)
    assert chunk.entities[0][1].properties == {"Name": EdmValue(Edm.STRING, "=B2&1")}
    assert {(it.column, it.change) for it in chunk.report.values} == {
        ("Name", ValueChange.STRING),
        ("Total", ValueChange.DROPPED),
    }
    # an empty text that Excel has computed is no value, as in other cells
    data = workbook_of(HEAD[:4], ("p", "1", "a", "=B2&1"))
    computed = change(data, SHEET, b'<c r="D2">', b'<c r="D2" t="str">')
    assert read(computed).entities[0][1].properties == {"Name": EdmValue(Edm.STRING, "a")}


def test_a_number_beyond_all_dates_stays_a_number():
    data = workbook_of(HEAD[:3], ("p", "1", datetime.fromisoformat("2026-03-28")))
    far = change(data, "xl/worksheets/sheet1.xml", b"46109", b"46109000000")
    assert read(far).entities[0][1].properties == {"Name": EdmValue(Edm.INT64, 46109000000)}


def test_durations_are_hours_minutes_and_seconds():
    rows = (timedelta(hours=42), timedelta(minutes=-90, milliseconds=-500))
    data = workbook_of(HEAD[:3], *(("p", number, it) for number, it in enumerate(rows)))
    durations = [entity.properties["Name"].value for _, entity in read(data).entities]
    assert durations == ["42:00:00", "-01:30:00.5"]


def test_rows_that_are_not_in_their_order_are_read():
    data = workbook_of(HEAD[:2], ("p", 1), ("p", 2), ("p", 3))
    mixed = change(data, "xl/worksheets/sheet1.xml", b'<row r="2"', b'<row r="9"')
    assert [(row.line, it.key.row_key) for row, it in read(mixed).entities] == [(9, "1"), (3, "2"), (4, "3")]


def test_coloured_cells_without_values_are_no_columns():
    workbook = openpyxl.Workbook()
    workbook.active.append(HEAD[:2])
    workbook.active.append(("p", 1))
    for column in range(3, 1200):
        workbook.active.cell(1, column).font = openpyxl.styles.Font(bold=True)
    sink = io.BytesIO()
    workbook.save(sink)
    assert [entity.key for _, entity in read(sink.getvalue()).entities] == [EntityKey("p", "1")]


def test_charts_are_no_sheets_of_rows():
    workbook = openpyxl.Workbook()
    workbook.active.append(HEAD[:2])
    workbook.active.append(("p", 1))
    workbook.create_chartsheet("Chart", 0)
    sink = io.BytesIO()
    workbook.save(sink)
    assert open_file(sink.getvalue()).layout.sheets == ("Sheet",)
    assert len(read(sink.getvalue()).entities) == 1


def test_other_documents_are_named():
    strict = change(
        workbook_of(HEAD[:2]),
        "xl/workbook.xml",
        b"http://schemas.openxmlformats.org/spreadsheetml/2006/main",
        b"http://purl.oclc.org/ooxml/spreadsheetml/main",
    )
    assert reason_of(strict) is Reason.FILE_ROWS_OTHER_DOCUMENT
    for names in (["mimetype", "content.xml"], ["[Content_Types].xml", "xl/workbook.bin"]):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            for name in names:
                archive.writestr(name, "x")
        assert reason_of(sink.getvalue()) is Reason.FILE_ROWS_OTHER_DOCUMENT


def change(data, member, old, new):
    """Return a workbook with other bytes in one of its files."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as to:
        for info in source.infolist():
            content = source.read(info)
            assert info.filename != member or old in content
            to.writestr(info.filename, content.replace(old, new) if info.filename == member else content)
    return sink.getvalue()


def test_refuses_damaged_hostile_and_old_files(monkeypatch):
    data = workbook_of(HEAD[:2], ("p", 1))
    sheet = "xl/worksheets/sheet1.xml"
    assert reason_of(b"\xd0\xcf\x11\xe0" + bytes(600)) is Reason.FILE_ROWS_OLD_EXCEL
    assert reason_of(change(data, sheet, b"</row>", b"</cell>")) is Reason.FILE_ROWS_NOT_EXCEL
    assert reason_of(change(data, sheet, b'r="2"', b'r="9999999"')) is Reason.FILE_ROWS_ROWLESS
    assert reason_of(workbook_of([str(number) for number in range(4001)])) is Reason.FILE_ROWS_COLUMNS
    assert reason_of(workbook_of(("a", "a"))) is Reason.FILE_ROWS_COLUMN_TWICE
    entities_of_xml = b'<!DOCTYPE a [<!ENTITY b "c">]><workbook '
    hostile = change(data, "xl/workbook.xml", b"<workbook ", entities_of_xml)
    assert reason_of(hostile) is Reason.FILE_ROWS_NOT_EXCEL
    bomb = change(data, sheet, b"</sheetData>", b"</sheetData>" + b" " * (100 << 20))
    assert reason_of(bomb) is Reason.FILE_ROWS_EXPANDS
    monkeypatch.setattr(excel, "_MOST_IN_MEMORY", 1000)
    assert reason_of(data) is Reason.FILE_ROWS_EXCEL_LARGE


def test_without_the_library_the_command_is_named(monkeypatch):
    data = workbook_of(HEAD[:2], ("p", 1))
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    assert reason_of(data) is Reason.FILE_ROWS_NO_EXCEL
    with pytest.raises(FileRefused) as refused:
        next(excel.write([], [], {}))
    assert "pip install 'tablero-server[excel]'" in str(refused.value)


# writing


def save(expected):
    """Return entities as a workbook."""
    names = list(dict.fromkeys(name for entity in expected for name in entity.properties))
    types = {(name, value.type) for entity in expected for name, value in entity.properties.items()}
    return b"".join(excel.write([[stored(it)] for it in expected], names, excel.group_uses(types)))


def entity_of(**properties):
    return Entity(EntityKey("p", "1"), properties)


def cells_of(data):
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    return sheet, {head.value: cell for head, cell in zip(*sheet.iter_rows(), strict=True)}


def test_formulas_stay_text_and_types_are_hidden_beside_their_values():
    entity = entity_of(
        A=EdmValue(Edm.STRING, '=HYPERLINK("x")'),
        B=EdmValue(Edm.INT64, 2**60),
        C=EdmValue(Edm.DOUBLE, 0.1 + 0.2),
        D=EdmValue(Edm.STRING, "#DIV/0!"),
        E=EdmValue(Edm.DATETIME, read_datetime("2026-03-28T15:21:00Z")),
        F=EdmValue(Edm.INT64, 7),
    )
    data = save([entity])
    sheet, cells = cells_of(data)
    assert (cells["A"].data_type, cells["A"].value, cells["A"].quotePrefix) == ("s", '=HYPERLINK("x")', True)
    assert (cells["B"].value, cells["C"].value, cells["D"].data_type) == (str(2**60), 0.1 + 0.2, "s")
    assert (cells["E"].value, cells["F"].value) == (datetime.fromisoformat("2026-03-28 15:21"), 7)
    assert cells["B@type"].value == "Int64" and "A@type" not in cells
    assert sheet.column_dimensions[cells["B@type"].column_letter].hidden
    assert not sheet.column_dimensions[cells["B"].column_letter].hidden
    check(data, [entity], "xlsx")


def can_hold(value):
    """Return whether a cell of Excel has a value, and no other value is the same cell."""
    if value.type is not Edm.STRING:
        return True
    text = value.value
    is_control = any(it < " " and it not in "\t\n\r" for it in text)
    return (
        text and not is_control and not any("\ud800" <= it <= "\udfff" or it in "\ufffe\uffff" for it in text)
    )


@hypothesis.settings(max_examples=of_usual(30))
@given(expected=entities)
def test_a_round_trip_loses_nothing(expected):
    for entity in expected:
        entity.properties = {name: value for name, value in entity.properties.items() if can_hold(value)}
    check(save(expected), expected, "xlsx")


@pytest.mark.parametrize("text", ["_x000D_", "a\r\nb", "\ttab\n", " x ", "_x005F_x000D_", "é" * 32_767])
def test_texts_are_the_same_afterwards(text):
    entity = entity_of(A=EdmValue(Edm.STRING, text))
    data = save([entity])
    chunk = read(data)
    assert same(chunk.entities[0][1].properties["A"], entity.properties["A"])


def test_refuses_what_a_cell_cannot_hold(monkeypatch):
    def reason(text):
        with pytest.raises(FileRefused) as refused:
            save([entity_of(A=EdmValue(Edm.STRING, text))])
        return refused.value.refusal.reason

    assert reason("x" * 32_768) is Reason.FILE_ROWS_EXCEL_TEXT
    assert {reason(text) for text in ("\x01", "\ud800")} == {Reason.FILE_ROWS_EXCEL_CHARACTER}
    with pytest.raises(UnexpectedProperty):
        list(excel.write([[stored(entity_of(A=EdmValue(Edm.INT32, 1)))]], [], {}))
    monkeypatch.setattr(excel, "MOST_ROWS", 0)
    assert reason("x") is Reason.FILE_ROWS_EXCEL_ROWS
    monkeypatch.setattr(excel, "MOST_COLUMNS", 3)
    assert reason("x") is Reason.FILE_ROWS_EXCEL_COLUMNS
