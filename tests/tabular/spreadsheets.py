"""CSV as spreadsheets of three countries save it, with an empty row, a repeated row and a column named like a key."""

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random
from typing import Final, NamedTuple


class Spreadsheet(NamedTuple):
    """CSV file of a spreadsheet, and what its columns hold."""

    content: bytes
    encoding: str
    delimiter: str
    keys: tuple[str, str]
    readings: dict[str, str]  # types and formats of columns other than String


def german(rows: int = 40) -> Spreadsheet:
    """Return customers as a German Excel saves them."""
    head = ["Kundennr", "Ort", "Name", "Umsatz", "Bestellt", "Aktiv", "PLZ", "rowkey"]
    readings = {
        "Umsatz": "Double decimal-comma",
        "Bestellt": "DateTime day-first",
        "Aktiv": "Boolean ja/nein",
    }
    content = _write(head, _german_rows(rows), ";").encode("cp1252")
    return Spreadsheet(content, "windows-1252", ";", ("{Ort}", "{Kundennr}"), readings)


def _german_rows(rows: int) -> Iterator[list[str]]:
    random = Random(1)
    places = ["Köln", "München", "Düsseldorf", "Nürnberg", "Berlin", "Zürich"]
    for number in range(1, rows + 1):
        yield [
            f"KD-{number:06}",
            random.choice(places),
            random.choice(["Müller", "Schäfer", "Weiß", "Lefèvre"]),
            f"{random.randrange(100, 9_999_999) / 100:,.2f}".translate({0x2C: ".", 0x2E: ","}),
            f"{random.randrange(1, 29):02}.{random.randrange(1, 13):02}.2026 {random.randrange(24):02}:21",
            random.choice(["ja", "nein"]),
            f"{random.randrange(1000, 99_999):05}",
            f"r{number % 7}",
        ]


def turkish(rows: int = 40) -> Spreadsheet:
    """Return customers as a Turkish Excel saves them."""
    head = ["Müşteri No", "Şehir", "Soyadı", "Tutar", "Tarih", "Aktif", "rowKey"]
    readings = {"Tutar": "Double decimal-comma", "Tarih": "DateTime day-first", "Aktif": "Boolean evet/hayır"}
    content = _write(head, _turkish_rows(rows), ";").encode("cp1254")
    return Spreadsheet(content, "windows-1254", ";", ("{Şehir}", "{Müşteri No}"), readings)


def _turkish_rows(rows: int) -> Iterator[list[str]]:
    random = Random(2)
    places = ["İstanbul", "Ankara", "İzmir", "Muğla", "Şanlıurfa", "Eskişehir"]
    for number in range(1, rows + 1):
        yield [
            f"M{number:06}",
            random.choice(places),
            random.choice(["Şahin", "Yılmaz", "Çelik", "Güler"]),
            f"{random.randrange(100, 999_999) / 100:.2f}".replace(".", ","),
            f"{random.randrange(1, 29):02}.{random.randrange(1, 13):02}.2026",
            random.choice(["evet", "hayır"]),
            f"r{number % 7}",
        ]


def american(rows: int = 40) -> Spreadsheet:
    """Return orders as an American Excel saves them."""
    head = ["Order ID", "City", "Customer", "Amount", "Ordered", "Paid", "ROWKEY"]
    readings = {"Amount": "Double decimal-point", "Ordered": "DateTime month-first", "Paid": "Boolean yes/no"}
    content = _write(head, _american_rows(rows), ",").encode("utf-8-sig")
    return Spreadsheet(content, "utf-8", ",", ("{City}", "{Order ID}"), readings)


def _american_rows(rows: int) -> Iterator[list[str]]:
    random = Random(3)
    for number in range(1, rows + 1):
        yield [
            f"A-{number + 10_000}",
            random.choice(["Austin", "Denver", "Boston", "Seattle", "Chicago"]),
            random.choice(["Smith", "O’Neil", "Jones", "Lee, Inc."]),
            f"{random.randrange(100_000, 9_999_999) / 100:,.2f}",
            f"{random.randrange(1, 13)}/{random.randrange(1, 29)}/2026",
            random.choice(["yes", "no"]),
            f"k{number % 7}",
        ]


def _write(head: Sequence[str], rows: Iterator[list[str]], delimiter: str) -> str:
    text, known = io.StringIO(), list(rows)
    middle = len(known) // 2
    csv.writer(text, delimiter=delimiter).writerows(
        chain([head], known[:middle], [[""] * len(head)], known[middle:], known[4:5])
    )
    return text.getvalue()


ALL: Final = (german, turkish, american)
