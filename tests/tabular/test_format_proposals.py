"""Formats proposed for columns, and their certainty; uncertain ones are never applied."""

import io
import json
from datetime import UTC, datetime

import pytest

from storage.domain.values.edm import Edm
from storage.editing.guessing import GuessReason
from storage.editing.input_context import InputContext
from storage.tabular.file import RowFile
from storage.tabular.layout import Wishes

CONTEXT = InputContext(datetime(2026, 11, 28, tzinfo=UTC))
CERTAIN, POSSIBLE, PARTIAL, ALTERNATIVE = "certain", "possible", "partial", "alternative"


def propose(text):
    data = text if isinstance(text, bytes) else text.encode()
    proposal = RowFile(lambda: io.BytesIO(data), Wishes()).propose(CONTEXT)
    return {it.column.source: it for it in proposal.columns}


def column(values, name="v", delimiter=","):
    """Return the proposals for a column of values, next to another column."""
    lines = [f"{name}{delimiter}other", *(f'"{value}"{delimiter}x' for value in values)]
    return propose("\n".join(lines) + "\n")[name]


def brief(proposed):
    return [(it.certainty.value, it.type.short_name, it.format) for it in proposed.formats]


@pytest.mark.parametrize(
    ("values", "type_", "format_"),
    [
        (("1.234,56", "99,90"), "Double", "decimal-comma"),
        (("0,5", "12"), "Double", "decimal-comma"),
        (("1.234.567", "12"), "Int32", "decimal-comma"),
        (("1.234.567.890.123", "12"), "Int64", "decimal-comma"),
        (("1 234,5", "2 000,0"), "Double", "decimal-comma"),
        (("1'234.50", "2'000.00"), "Double", "decimal-point"),
        (("1,234.50", "12,000"), "Double", "decimal-point"),
        (("12,34,567", "1,00,000"), "Int32", "decimal-point"),
        (("$5.00", "$1,200.00"), "Double", "decimal-point $"),
        (("5,00 €", "7,50 EUR", "1,00"), "Double", "decimal-comma €"),
        (("1.234,50 TL", "₺5,00"), "Double", "decimal-comma TL"),
        (("(5.25)", "7.00"), "Double", "decimal-point"),
        (("5,25-", "7,00"), "Double", "decimal-comma"),
        (("28.11.2026", "01.12.2026"), "DateTime", "day-first"),
        (("28.11.2026", "15.01.2027 13:45"), "DateTime", "day-first"),
        (("11/28/2026", "01/02/2026"), "DateTime", "month-first"),
        (("11/28/26 1:05 PM", "01/02/26 2:00 AM"), "DateTime", "month-first"),
        (("2026-11-28", "2026-01-02"), "DateTime", "year-first"),
        (("2026/11/28", "2026/1/2"), "DateTime", "year-first"),
        (("28 Nov 2026", "2 January 2027"), "DateTime", "day-first"),
        (("Nov 28, 2026", "Jan 2, 2027"), "DateTime", "month-first"),
        (("WAHR", "FALSCH", "wahr"), "Boolean", "WAHR/FALSCH"),
        (("oui", "non"), "Boolean", "oui/non"),
        (("y", "n"), "Boolean", "y/n"),
        (("EVET", "hayır"), "Boolean", "EVET/hayır"),
        (("是", "否"), "Boolean", "是/否"),
    ],
)
def test_unambiguous_columns_are_certain(values, type_, format_):
    proposed = column(values)
    assert brief(proposed) == [(CERTAIN, type_, format_)]
    assert (proposed.column.type, proposed.column.format) == (Edm.STRING, "")  # nothing is applied


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("01/02/2026", "03/04/2026"), [("DateTime", "day-first"), ("DateTime", "month-first")]),
        (
            ("05.05.2026",),
            [("DateTime", "day-first"), ("DateTime", "month-first")],
        ),  # the next file may differ
        (("28.11.26", "01.02.03"), [("DateTime", "day-first"), ("DateTime", "year-first")]),
        (("1,234", "2,500"), [("Int32", "decimal-point"), ("Double", "decimal-comma")]),
        (
            ("12.5 %", "3%"),
            [("Double", "decimal-point percent-as-fraction"), ("Double", "decimal-point percent-as-number")],
        ),
        (("$5", "$7"), [("Double", "decimal-point $"), ("Double", "decimal-comma $")]),
        (("yes", "yes"), [("Boolean", "yes/no")]),
    ],
)
def test_ambiguous_columns_are_left_to_the_user(values, expected):
    proposed = column(values)
    assert [it[1:] for it in brief(proposed)] == expected
    assert {it.certainty for it in proposed.formats} == {POSSIBLE} and proposed.column.type is Edm.STRING


@pytest.mark.parametrize(
    "values",
    [
        ("007", "012"),
        ("12345678901234567890", "98765432109876543210"),
        ("9007199254740993", "12345678901234567890"),
        ("+4917012345", "+90532"),
        ("+49 170 123", "+90 532 456"),
        ("192.168.100.200", "192.168.100.201"),
        ("1234 5678 9012 3456", "1234 5678 9012 3457"),
        ("x", "y"),
        ("ja", "ja"),  # an ambiguous language
        ("1,0000000000000000000001", "2,5"),  # no type holds it exactly
        ("12.345.678.901.234.567.890", "1"),
        ("a/b", "c/d"),
        ("", ""),
    ],
)
def test_identifiers_and_texts_stay_what_they_are(values):
    proposed = column(values)
    assert (brief(proposed), proposed.column.type) == ([], Edm.STRING)


def test_groups_of_three_digits_may_be_an_identifier():
    assert {it[0] for it in brief(column(("732 829 320", "542 107 651")))} == {POSSIBLE}


def test_other_columns_decide_what_comes_first():
    german = propose('a;b;c\n1.234;01/02/2026;"7 €"\n2.500;03/04/2026;"8,5 €"\n')
    assert (german["a"].column.type, german["a"].reason) == (Edm.STRING, GuessReason.TWO_READINGS)
    assert brief(german["a"]) == [(POSSIBLE, "Int32", "decimal-comma"), (POSSIBLE, "Double", "")]
    assert brief(german["b"])[0][2] == "day-first"
    english = propose('a;b;c\n1.234;01/02/2026;"$1,200.50"\n2.500;03/04/2026;"$5.00"\n')
    assert english["a"].column.type is Edm.DOUBLE
    assert brief(english["a"]) == [(ALTERNATIVE, "Int32", "decimal-comma")]
    assert brief(english["b"])[0][2] == "month-first"
    # where the file shows its decimal sign, numbers without one are not proposed twice
    spanish = propose("a;b\n1,5;5 €\n2,5;7 €\n")
    assert brief(spanish["b"]) == [(POSSIBLE, "Double", "decimal-comma €")]
    # a file without commas for fields may be of a country where they are decimal signs
    assert propose("a;b\n1.234;x\n2.500;y\n")["a"].column.type is Edm.STRING
    assert propose("a,b\n1.234,x\n2.500,y\n")["a"].column.type is Edm.DOUBLE
    assert propose("a;b\n1.234;x\n0.500;y\n")["a"].column.type is Edm.DOUBLE


def test_misfitting_values_are_listed():
    dates = [f"{day % 28 + 1:02}.11.2026" for day in range(412)]
    [proposal] = column([*dates, "n/a", "unknown", "11/28/2026"]).formats
    assert (proposal.certainty, proposal.fitting, proposal.values) == (PARTIAL, 412, 415)
    assert proposal.misfits == ("n/a", "unknown", "11/28/2026")
    assert proposal.sentence == (
        "412 of 415 values are dates, day first: 01.11.2026 → 2026-11-01, 02.11.2026 → 2026-11-02, 03.11.2026 →"
        " 2026-11-03; 3 are not: 'n/a', 'unknown', '11/28/2026'."
    )
    assert brief(column(("36", "41", "n/a"))) == [(PARTIAL, "Int32", "")]
    assert brief(column(("1,5", "2,5", "?"))) == [(PARTIAL, "Double", "decimal-comma")]
    assert brief(column(("5 €", "7 €", "8 €", "5 $")))[0][0] == PARTIAL
    assert brief(column(("17", "18", "007"))) == []  # leading zeros are those of identifiers
    assert brief(column(("1,5", "x", "y"))) == []


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("v", ("46354", "46024"), [("DateTime", "excel-days")]),  # around now
        ("datum", ("25569", "30000"), [("DateTime", "excel-days")]),  # by its name
        ("v", ("25569", "30000"), []),
        ("v", ("1795824000", "1767312000"), [("DateTime", "epoch-seconds")]),
        ("v", ("1795824000123", "1767312000000"), [("DateTime", "epoch-milliseconds")]),
        ("v", ("20261128", "20260102"), [("DateTime", "year-first")]),
        ("v", ("20261328", "20260102"), []),
        ("v", ("1", "0", "1"), [("Boolean", "1/0")]),
        ("v", ("1", "1"), []),
        ("v", ("1", "2", "3"), []),
        ("createdAt", ("1", "2", "3"), []),
    ],
)
def test_numbers_may_be_times_or_yes_and_no(name, values, expected):
    proposed = column(values, name)
    assert brief(proposed) == [(ALTERNATIVE, *it) for it in expected]
    assert proposed.column.type in (Edm.INT32, Edm.INT64)


def test_texts_and_numbers_of_json():
    rows = [
        {"at": f"2026-11-{day}T10:00:00Z", "on": f"{day}.11.2026", "n": f"{day},5", "epoch": 1795824000 + day,
         "mixed": str(day) if day % 2 else day}
        for day in range(13, 29)
    ]  # fmt: skip
    columns = propose(json.dumps(rows))
    assert {name: brief(it) for name, it in columns.items()} == {
        "at": [(ALTERNATIVE, "DateTime", "")],
        "on": [(CERTAIN, "DateTime", "day-first")],
        "n": [(CERTAIN, "Double", "decimal-comma")],
        "epoch": [(ALTERNATIVE, "DateTime", "epoch-seconds")],
        "mixed": [],
    }
    assert {it.column.type for it in columns.values()} == {None}


def test_samples_of_times_are_shown_as_people_read_them():
    [proposal] = column(("28.11.2026", "15.01.2027 13:45")).formats
    assert proposal.shown_samples == [
        ("28.11.2026", "2026-11-28"),
        ("15.01.2027 13:45", "2027-01-15 13:45:00"),
    ]
    assert proposal.sentence == (
        "All values are dates, day first: 28.11.2026 → 2026-11-28, 15.01.2027 13:45 → 2027-01-15 13:45:00."
    )
