"""The database projects the texts of an entity exactly as the server does."""

import math

import pytest
from hypothesis import HealthCheck, given, settings

from storage.domain.entities.entity import write_fragments
from storage.domain.values.edm import FIRST_COSMOS_TICK, Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.sql.django import fetch
from tests import strategies
from tests.examples import of_usual

VALUES = {
    "String": [
        *(
            "",
            "plain",
            'a "quoted" \\ text',
            "\\u0000 as text, \\\\u0001 too",
            "line\nand\ttab",
            "E",
            "5.0E1",
        ),
        *("\0", "\1", "\ue000", "\ue001", "\0\1\ue000\ud800", "\\\0", "\\\\\1", "Infinity"),
        *(
            "\ud800",
            "\udfff",
            "\udc00\ud800",
            "\ud800 and \ud800\n",
            "😀\ud83d",
            "\udc00😀\U0010ffff",
            "字\x7f",
        ),
    ],
    "Boolean": [True, False],
    "Int32": [0, -1, 2**31 - 1, -(2**31)],
    "Int64": [0, -1, 2**63 - 1, -(2**63)],
    "Double": [
        *(0.0, -0.0, 1.0, -1.5, 100.0, 0.1, 1e15, 1e16, 1e22, -1e22, 1.2345678901234567e19, 1e-5, -1.5e-7),
        *(5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf),
    ],
    "DateTime": [0, 1, -1, 10, 1_000_000, 10_000_000, strategies.FIRST_TICK, strategies.LAST_TICK],
    "Guid": ["7f3a19c0-0000-4000-8000-000000000001"],
    "Binary": [b"", b"\0", b"\xff" * 100],
}


def check(properties, kind=AccountKind.STORAGE):
    """Compare texts, since numbers of different scale are equal but of different types."""
    expected, content = write_fragments(properties, kind)
    [[actual, wanted]] = fetch("SELECT entity_projection(%s)::text, %s::jsonb::text", content, expected)
    assert actual == wanted


@pytest.mark.parametrize("kind", AccountKind)
@pytest.mark.parametrize("type_", VALUES)
def test_values(db, type_, kind):
    edm = Edm(f"Edm.{type_}")
    for value in VALUES[type_]:
        check({"A": EdmValue(edm, value)}, kind)
    check({f"P{number}": EdmValue(edm, value) for number, value in enumerate(VALUES[type_])}, kind)


def test_names_and_old_times(db):
    check({})
    check({"AB": EdmValue(Edm.INT64, 1), "B": EdmValue(Edm.INT32, 2), "éß名𝐀": EdmValue(Edm.INT64, 3)})
    for tick in (FIRST_COSMOS_TICK, FIRST_COSMOS_TICK + 1_230):
        check({"A": EdmValue(Edm.DATETIME, tick)}, AccountKind.COSMOS)


def paired(value):
    """Join surrogates that are two characters of a Python string, as whatever reads JSON does."""
    if value.type is Edm.STRING:
        units = value.value.encode("utf-16-le", "surrogatepass")
        return value._replace(value=units.decode("utf-16-le", "surrogatepass"))
    return value


@settings(
    max_examples=of_usual(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(strategies.properties)
def test_any_properties(db, properties):
    check({name: paired(value) for name, value in properties.items()})
