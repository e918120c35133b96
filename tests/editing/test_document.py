"""An entity as a document: exact there and back, and every fault with its place."""

import math

import pytest
from hypothesis import example, given, settings

from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import merge
from storage.editing.document import DocumentFault, InvalidDocument, read, write
from tests.examples import of_usual
from tests.strategies import properties

KEY = EntityKey("", "a'\"é🦊")
VALUES = {
    "Text": EdmValue(Edm.STRING, 'line\nline\ttab \x00 \ud800 \u202e \u2028 \ufffe é 🦊 " \\'),
    "Zero": EdmValue(Edm.DOUBLE, -0.0),
    "One": EdmValue(Edm.DOUBLE, 1.0),
    "Nan": EdmValue(Edm.DOUBLE, math.nan),
}


@settings(max_examples=of_usual(50))
@given(properties)
@example(VALUES)
def test_is_exact_there_and_back(values):
    text = write(Entity(KEY, values))

    result = read(text)

    assert result.key == KEY
    assert list(result.properties) == list(values)
    assert merge.changed_names(values, result.properties) == []
    text.encode()  # a page can carry it
    assert "\x00" not in text


def test_ignores_control_information():
    result = read(
        '{"odata.etag": "W/x", "odata.metadata": 1, "PartitionKey": "p", "RowKey@odata.type": "Edm.String",'
        ' "RowKey": "r", "Timestamp": "2020-01-01T00:00:00Z", "Timestamp@odata.type": "Edm.DateTime", "A": 1}'
    )

    assert result == Entity(EntityKey("p", "r"), {"A": EdmValue(Edm.INT32, 1)})


HEAD = '{\n  "PartitionKey": "p",\n  "RowKey": "r",\n'


@pytest.mark.parametrize(
    ("text", "fault", "line", "column"),
    [
        ("", DocumentFault.NOT_JSON, 1, 1),
        ("  []", DocumentFault.NOT_OBJECT, 1, 3),
        ('{"PartitionKey": "p"}', DocumentFault.NO_KEY, 1, 1),
        ('{"PartitionKey": 1, "RowKey": "r"}', DocumentFault.KEY, 1, 18),
        (HEAD + '  "A": 1,\n  "A": 2\n}', DocumentFault.TWICE, 5, 3),
        (HEAD + '  "A": 1,\n}', DocumentFault.NOT_JSON, 5, 1),
        (HEAD + '  "A": NaN}', DocumentFault.NOT_JSON, 4, 8),
        (HEAD + '  "A": 0.1000000000000000055511}', DocumentFault.DIGITS, 4, 8),
        (HEAD + '  "A@type": "double", "A": "0.1000000000000000055511"}', DocumentFault.DIGITS, 4, 28),
        (HEAD + '  "A@type": "DateTime", "A": "2026-11-28T01:02:03.12345678Z"}', DocumentFault.DIGITS, 4, 30),
        (HEAD + '  "A": 1e400}', DocumentFault.VALUE, 4, 8),
        (HEAD + '  "A@type": "Int64"}', DocumentFault.NO_PROPERTY, 4, 3),
        (HEAD + '  "A@b": 1}', DocumentFault.NAME, 4, 3),
        (HEAD + '  "@type": 1}', DocumentFault.NAME, 4, 3),
        (HEAD + '  "A": 1} x', DocumentFault.NOT_JSON, 4, 11),
        (HEAD + '  "A": "x', DocumentFault.NOT_JSON, 4, 8),
        (HEAD + '  "A": "\n"}', DocumentFault.NOT_JSON, 4, 9),
        (HEAD + '  "A": null}', DocumentFault.NULL, 4, 8),
        (HEAD + '  "A": {"b": 1}}', DocumentFault.NESTED, 4, 8),
        (HEAD + '  "A b": 1}', DocumentFault.NAME, 4, 3),
        (HEAD + '  "@x": 1}', DocumentFault.NAME, 4, 3),
        (HEAD + '  "A@odata.type": "Edm.Int46",\n  "A": "1"}', DocumentFault.NO_TYPE, 4, 19),
        (HEAD + '  "A@odata.type": 7,\n  "A": "1"}', DocumentFault.NO_TYPE, 4, 19),
        (HEAD + '  "A@odata.type": "Edm.Int64"}', DocumentFault.NO_PROPERTY, 4, 3),
        (HEAD + '  "A@odata.type": "Edm.Int64",\n  "A": "x"}', DocumentFault.VALUE, 5, 8),
        (HEAD + '  "A": 12345678901234567890123}', DocumentFault.VALUE, 4, 8),
        (HEAD + '  "A": "' + "x" * 32769 + '"}', DocumentFault.TOO_LARGE, 4, 8),
        (
            HEAD + '  "A@odata.type": "Edm.DateTime",\n  "A": "1500-01-01T00:00:00Z"}',
            DocumentFault.OUT_OF_RANGE,
            5,
            8,
        ),
        ("[" * 100_000, DocumentFault.NOT_JSON, 1, 1),
        (HEAD + '  "A": ' + "[" * 100_000 + "}", DocumentFault.NOT_JSON, 4, 8),
        (HEAD + '  "A": ' + "1" * 5000 + "}", DocumentFault.NOT_JSON, 4, 8),
    ],
)
def test_reports_faults_with_positions(text, fault, line, column):
    with pytest.raises(InvalidDocument) as failure:
        read(text)

    assert (failure.value.fault, failure.value.line, failure.value.column) == (fault, line, column)


@pytest.mark.parametrize("mark", ["@odata.type", "@type", "@OData.Type"])
@pytest.mark.parametrize("name", ["Edm.Int64", "Int64", "int64"])
def test_types_however_they_are_spelled(mark, name):
    text = HEAD + f'  "A": "5", "A{mark}": "{name}", "rowkey": "x", "odata.etag": "W", "Timestamp": "x"}}'
    assert read(text).properties == {"A": EdmValue(Edm.INT64, 5), "rowkey": EdmValue(Edm.STRING, "x")}
