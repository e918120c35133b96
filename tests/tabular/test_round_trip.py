"""Round trip of exports through imports: every value of every type, in every format."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.entities.entity import Entity, EntityKey, StoredEntity, encode_entity_key, write_fragments
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.input_context import InputContext
from storage.tabular import parquet, proposals, writing
from storage.tabular.file import RowFile
from storage.tabular.formulas import escape_formula, unescape_formula
from storage.tabular.layout import FileFormat, Layout, Wishes
from storage.tabular.mapping import ColumnMapping
from storage.tabular.writing import ExportFormat
from tests.domain.test_edm import same
from tests.examples import of_usual
from tests.strategies import keys, properties, texts

CONTEXT = InputContext(datetime(2026, 11, 26, tzinfo=UTC))
KEYS = {"partition_key": "{PartitionKey}", "row_key": "{RowKey}"}
entities = st.lists(st.builds(Entity, st.builds(EntityKey, keys, keys), properties), min_size=1, max_size=4)


def stored(entity):
    written = write_fragments(entity.properties)
    return StoredEntity(encode_entity_key(entity.key), b"0", written.content.encode())


def check(data, expected, format_, **mapping):
    chosen = FileFormat.CSV if "csv" in format_ else FileFormat(format_)
    file = RowFile(lambda: io.BytesIO(data), Wishes(format=chosen, encoding="utf-8", delimiter=","))
    proposed = replace(proposals.complete(file.propose(CONTEXT)), **mapping)
    for chosen_mapping in (ColumnMapping(**KEYS, **mapping), proposed):
        check_entities(file.chunks(chosen_mapping, CONTEXT), expected)


def check_entities(read_chunks, expected):
    chunks = list(read_chunks)
    assert [reject.sentence for chunk in chunks for reject in chunk.rejects] == []
    results = [entity for chunk in chunks for _, entity in chunk.entities]
    assert [entity.key for entity in results] == [entity.key for entity in expected]
    for one, other in zip(results, expected, strict=True):
        assert set(one.properties) == set(other.properties)
        assert all(same(one.properties[name], value) for name, value in other.properties.items())


@pytest.mark.parametrize(
    ("format_", "escapes"),
    [
        (ExportFormat.TYPED_CSV, False), (ExportFormat.TYPED_CSV, True), (ExportFormat.JSON, False),
        (ExportFormat.NDJSON, False),
    ],
)  # fmt: skip
@hypothesis.settings(max_examples=of_usual(20))
@given(expected=entities)
def test_text(format_, escapes, expected):
    names = list(dict.fromkeys(name for entity in expected for name in entity.properties))
    pages = [[stored(entity)] for entity in expected]
    text = "".join(writing.write(format_, pages, names, escapes_formulas=escapes))
    check(text.encode(errors="surrogatepass"), expected, format_, unescapes_formulas=escapes)


@pytest.mark.parametrize("format_", [ExportFormat.TYPED_CSV, ExportFormat.JSON, ExportFormat.NDJSON])
def test_a_property_with_numbers_of_several_types(format_):
    numbers = (
        EdmValue(Edm.INT32, 5),
        EdmValue(Edm.DOUBLE, 2.5),
        EdmValue(Edm.DOUBLE, 5.0),
        EdmValue(Edm.INT64, 5),
    )
    for values in (numbers, numbers[:3], numbers[:2], numbers[::3]):
        expected = [Entity(EntityKey("p", str(key)), {"n": it}) for key, it in enumerate(values)]
        text = "".join(writing.write(format_, [[stored(it)] for it in expected], ["n"]))
        check(text.encode(), expected, format_)


def test_entities_of_several_kinds_have_more_properties_together_than_one_may():
    """Three kinds of 200 properties, each with a column for its type."""
    expected = [
        Entity(EntityKey("p", str(key)), {f"{key}_{it}": EdmValue(Edm.INT64, it) for it in range(200)})
        for key in ("a", "b", "c")
    ]
    names = [name for entity in expected for name in entity.properties]
    text = "".join(writing.write(ExportFormat.TYPED_CSV, [[stored(it)] for it in expected], names))
    check(text.encode(), expected, ExportFormat.TYPED_CSV)


@hypothesis.settings(max_examples=of_usual(20))
@given(expected=entities)
def test_parquet(expected):
    pytest.importorskip("pyarrow")
    for entity in expected:
        entity.properties = {
            name: value
            for name, value in entity.properties.items()
            if value.type is not Edm.STRING or not has_half(value.value)
        }
    results = {}
    for entity in expected:
        for name, (type_, content) in entity.properties.items():
            is_time = type_ is Edm.DATETIME
            use = parquet.Use(
                name,
                type_,
                not is_time or content % 10 == 0,
                not is_time or -92_000_000_000_000_000 < content < 92_000_000_000_000_000,
            )
            before = results.get((name, type_), use)
            results[name, type_] = use._replace(
                is_micro=use.is_micro and before.is_micro, is_near=use.is_near and before.is_near
            )
    data = b"".join(parquet.write([[stored(entity)] for entity in expected], results.values()))
    check(data, expected, "parquet")


def has_half(text):
    return any("\ud800" <= letter <= "\udfff" for letter in text)


@given(texts | st.text("'=+-@\t1.e", max_size=6))
def test_every_text_has_one_escaped_form(text):
    assert unescape_formula(escape_formula(text)) == text


def test_a_layout_and_a_mapping_are_json():
    layout = Layout(FileFormat.CSV, columns=("a", "b"))
    known = json.loads(json.dumps({name: getattr(layout, name) for name in Layout.__slots__}))
    assert Layout.load(known) == layout
    mapping = ColumnMapping(**KEYS)
    assert ColumnMapping.load(json.loads(json.dumps(mapping.dump()))) == mapping
