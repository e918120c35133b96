"""Round trip of exports: pasted typed CSV, JSON and NDJSON restore every value of every type."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.entities.entity import Entity, EntityKey, StoredEntity, encode_entity_key, write_fragments
from storage.domain.values.edm import Edm
from storage.editing.input_context import InputContext
from storage.tabular.pasted import PasteOptions, read
from storage.tabular.writing import ExportFormat, write
from tests.domain.test_edm import same
from tests.examples import of_usual
from tests.strategies import keys, properties

HALF = re.compile("[\ud800-\udfff]")
NOW = datetime(2026, 11, 20, 14, 3, 7, tzinfo=UTC)
# CSV is UTF-8, which has no halves of characters
without_halves = properties.filter(
    lambda found: not any(value.type is Edm.STRING and HALF.search(value.value) for value in found.values())
)


def stored(entity):
    written = write_fragments(entity.properties)
    return StoredEntity(encode_entity_key(entity.key), b"0", written.content.encode())


def pasted(format_, entity):
    file = "".join(write(format_, [[stored(entity)]], list(entity.properties)))
    return read(file, PasteOptions(), InputContext(NOW), 1)


def check(pasted_rows, entity):
    assert not pasted_rows.problems
    [row] = pasted_rows.rows
    assert row.entity.key == entity.key
    assert list(row.entity.properties) == list(entity.properties)
    for name, value in entity.properties.items():
        assert same(row.entity.properties[name], value)


@settings(max_examples=of_usual(50))
@given(st.builds(EntityKey, keys, keys), without_halves)
def test_typed_csv(key, found):
    check(pasted(ExportFormat.TYPED_CSV, Entity(key, found)), Entity(key, found))


@pytest.mark.parametrize("format_", [ExportFormat.JSON, ExportFormat.NDJSON])
@settings(max_examples=of_usual(50))
@given(key=st.builds(EntityKey, keys, keys), found=properties)
def test_json(format_, key, found):
    check(pasted(format_, Entity(key, found)), Entity(key, found))
