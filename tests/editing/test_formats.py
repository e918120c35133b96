"""Numbers, dates and words as people write them, rewritten as their type is usually written."""

import pytest

from storage.editing.formats.format import NotInFormat
from storage.editing.formats.reading import UnknownFormat, read_format

# in each format, texts and what they are rewritten to; None: they are not spelled in it
TEXTS = {
    "decimal-comma": {
        "1.234,56": "1234.56",
        "99,90": "99.90",
        "-0,5": "-0.5",
        ",5": "0.5",
        "+3,5": "3.5",
        "1.234": "1234",
        "1.234.567": "1234567",
        "12": "12",
        "1 234 567,8": "1234567.8",
        "1\u00a0234,5": "1234.5",
        "1\u202f234,5": "1234.5",
        "1’234,5": "1234.5",
        "1'234": "1234",
        " 7,5 ": "7.5",
        "\u22125": "-5",
        "5,00-": "-5.00",
        "(5,00)": "-5.00",
        "1,5E+03": "1.5E+03",
        "0,1000000000000000055511": "0.1000000000000000055511",
        **dict.fromkeys(
            ("", "007", "1.23", "1.2345", "1,234.5", "1.234 567", "1,2,3", "5,", "12 %", "5 €", "x", "1e9x")
        ),
        **dict.fromkeys(("--5", "-(5)", "(5", "5)", "5+", "-5-", "١٢", "9" * 500)),
    },
    "decimal-point": {
        "1,234.50": "1234.50",
        "12,000": "12000",
        "1,23,456.7": "123456.7",
        "1’234.50": "1234.50",
        ".5": "0.5",
        "(5.00)": "-5.00",
        **dict.fromkeys(("12,00", "1,5", "0,500", "1.234,5", "1.2.3")),
    },
    "decimal-comma €": {
        "5,00 €": "5.00",
        "€ 1.200,00": "1200.00",
        "EUR 5": "5",
        "5,00": "5.00",
        "-5,00 €": "-5.00",
        "5,00- €": "-5.00",
        "(5,00 €)": "-5.00",
        **dict.fromkeys(("$5,00", "5 %", "5 EUR €", "5.00 €")),
    },
    "decimal-point $": {
        "$1,200.00": "1200.00",
        "-$5": "-5",
        "$-5": "-5",
        "($5.00)": "-5.00",
        "$.50": "0.50",
        **dict.fromkeys(("5 USD", "US$5", "C$5")),  # may be other dollars
    },
    "decimal-comma kr": {"5,00 kr": "5.00", "kr. 5,00": "5.00", "1 000,00 kr": "1000.00", "5 SEK": None},
    "decimal-comma ₺": {"₺1.234,50": "1234.50", "1.234,50 TL": "1234.50", "5 TRY": "5", "5 TLX": None},
    "decimal-point ¥": {"¥1,200": "1200", "￥1,200": "1200", "1,200 円": None},
    "decimal-point Rs": {"Rs.500": "500", "Rs. 1,00,000.00": "100000.00", "₹5": "5"},
    "decimal-point percent-as-fraction": {
        "12%": "0.12",
        "3.5 %": "0.035",
        "%12": "0.12",
        "(5%)": "-0.05",
        "12.3456789012345678901234567890%": "0.123456789012345678901234567890",
        **dict.fromkeys(("12", "3,5%", "12%%", "$5%")),
    },
    "decimal-comma percent-as-number": {"12,5 %": "12.5", "100 %": "100"},
    "day-first": {
        "28.11.2026": "2026-11-28T00:00:00",
        "1.2.2026": "2026-02-01T00:00:00",
        "28/11/26": "2026-11-28T00:00:00",
        "28-11-69": "1969-11-28T00:00:00",
        "28. 11. 2026": "2026-11-28T00:00:00",
        "15.01.2027 13:45": "2027-01-15T13:45:00",
        "15.01.2027, 13:45:10": "2027-01-15T13:45:10",
        "15.01.2027 13.45": "2027-01-15T13:45:00",
        "15/01/2027 1:45 PM": "2027-01-15T13:45:00",
        "15/01/2027 12:05 a.m.": "2027-01-15T00:05:00",
        "15/01/2027 13:45:10.1234567": "2027-01-15T13:45:10.1234567",
        "15/01/2027 13:45 +03:00": "2027-01-15T13:45:00+03:00",
        "15/01/2027 13:45 UTC": "2027-01-15T13:45:00Z",
        "28 Nov 2026": "2026-11-28T00:00:00",
        "28-Nov-26": "2026-11-28T00:00:00",
        "Sat, 28 Nov 2026 13:45:10 GMT": "2026-11-28T13:45:10Z",
        "Nov 28, 2026": "2026-11-28T00:00:00",
        "3. März 2026": "2026-03-03T00:00:00",
        "1er août 2026": "2026-08-01T00:00:00",
        "28 de noviembre de 2026": "2026-11-28T00:00:00",
        "28 Kasım 2026": "2026-11-28T00:00:00",
        "28 ŞUBAT 2026": "2026-02-28T00:00:00",
        **dict.fromkeys(
            ("13/45/2026", "11/28/2026", "31.04.2026", "29.02.2026", "2026-11-28", "28.11/2026", "1.2.3")
        ),
        **dict.fromkeys(
            (
                "28.11.",
                "28.11.2026 25:00",
                "28.11.2026 13",
                "28.11.2026 13:45 PM",
                "28 Foo 2026",
                "",
                "x" * 99,
            )
        ),
        **dict.fromkeys(("28.11.2026 13:45:10.12345678", "20261128", "28.11.20261")),
    },
    "month-first": {
        "11/28/2026": "2026-11-28T00:00:00",
        "01/02/2026": "2026-01-02T00:00:00",
        "1/2/26 1:05:07 pm": "2026-01-02T13:05:07",
        "November 28, 2026 at 3 PM": "2026-11-28T15:00:00",
        "28/11/2026": None,
    },
    "year-first": {
        "2026-11-28": "2026-11-28T00:00:00",
        "2026-11-28T13:45:00+03:00": "2026-11-28T13:45:00+03:00",
        "2026/1/2 13:45": "2026-01-02T13:45:00",
        "26-11-28": "2026-11-28T00:00:00",
        "20261128": "2026-11-28T00:00:00",
        "2026年11月28日": "2026-11-28T00:00:00",
        "2026. 11. 28.": "2026-11-28T00:00:00",
        "2026/11/28 下午 1:05": "2026-11-28T13:05:00",
        "2026/11/28 上午 9:05": "2026-11-28T09:05:00",
        "2026/11/28 午前9:05": "2026-11-28T09:05:00",
        "2026-11-28 오전 9:05:00": "2026-11-28T09:05:00",
        "2026-11-28 오후 9:05:00": "2026-11-28T21:05:00",
        "2026-Nov-28": "2026-11-28T00:00:00",
        **dict.fromkeys(("28.11.2026", "20261332", "2026-11")),
    },
    "excel-days": {
        "46354": "2026-11-28T00:00:00",
        "46024.5729166667": "2026-01-02T13:45:00",
        "46354,5": "2026-11-28T12:00:00",
        "59": "1900-02-28T00:00:00",
        "61": "1900-03-01T00:00:00",
        **dict.fromkeys(("60", "0", "-1", "2958466", "46.354.1", "x")),
    },
    "epoch-seconds": {
        "1795824000": "2026-11-28T00:00:00Z",
        "1795824000.5": "2026-11-28T00:00:00.5000000Z",
        "-1": "1969-12-31T23:59:59Z",
        **dict.fromkeys(("99999999999999", "1795824000.12345678", "x")),
    },
    "epoch-milliseconds": {"1795824000123": "2026-11-28T00:00:00.1230000Z"},
    "ja/nein": {"JA": "true", " nein": "false", "no": None, "": None},
    "evet/hayır": {"EVET": "true", "HAYIR": "false", "Hayır": "false", "hayir": "false"},
    "是/否": {"是": "true", "否": "false"},
    "1/0": {"1": "true", "0": "false", "2": None},
}


def rewrite(format_, text):
    try:
        return read_format(format_).rewrite(text)
    except NotInFormat:
        return None


@pytest.mark.parametrize("format_", TEXTS)
def test_texts_are_rewritten_or_refused(format_):
    assert {text: rewrite(format_, text) for text in TEXTS[format_]} == TEXTS[format_]
    assert read_format(read_format(format_).spelling) == read_format(format_)


@pytest.mark.parametrize(
    ("spelling", "format_"),
    [
        ("comma", "decimal-comma"),
        ("Decimal-Point", "decimal-point"),
        ("dot percent-as-number", "decimal-point percent-as-number"),
        ("dd.MM.yyyy", "day-first"),
        ("DD/MM/YY HH:mm:ss", "day-first"),
        ("%m/%d/%Y", "month-first"),
        ("M/d/yyyy h:mm tt", "month-first"),
        ("yyyy-MM-dd'T'HH:mm", "year-first"),
        ("dmy", "day-first"),
        ("unix", "epoch-seconds"),
    ],
)
def test_formats_are_also_known_by_other_names(spelling, format_):
    assert read_format(spelling).spelling == format_


@pytest.mark.parametrize(
    "text", ["", "klingon", "decimal-comma klingon", "dd", "a/a", "a/", "1/2/3", "decimal-comma € €"]
)
def test_unknown_formats_are_refused_with_a_list(text):
    with pytest.raises(UnknownFormat, match="decimal-comma"):
        read_format(text)
