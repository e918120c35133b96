"""Fragments of entities, and the limits of their contents."""

import json

import pytest
from hypothesis import given, settings

from storage.domain.entities.entity import (
    PROPERTY_LIMIT,
    Entity,
    EntityKey,
    StoredEntity,
    check_size,
    encode_entity_key,
    entity_size,
    read_stored,
    write_fragments,
    write_members,
)
from storage.domain.errors import EntityTooLarge, TooManyProperties
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.encoding import needs_annotation
from storage.domain.values.kinds import AccountKind
from tests.examples import of_usual
from tests.strategies import properties

SIZE_LIMIT = AccountKind.STORAGE.entity_size_limit

KEY = EntityKey("pp", "r😀")  # 5 UTF-16 units


def text(length):
    return EdmValue(Edm.STRING, "x" * length)


def test_the_fragments_of_an_entity():
    written = write_fragments(
        {
            "A": EdmValue(Edm.INT32, 5),
            "B": EdmValue(Edm.INT64, 5),
            "Ж": EdmValue(Edm.STRING, 'q"\n'),
            "D": EdmValue(Edm.DOUBLE, float("nan")),
        }
    )

    assert written.projection == '{"A":5,"B":5.00,"\\u0416":"sq\\"\\n","D":"n"}'
    assert written.content.split("\n") == [
        "",
        ',"A":5',
        '\t,"B@odata.type":"Edm.Int64"\t,"B":"5"',
        ',"\\u0416":"q\\"\\n"',
        '\t,"D@odata.type":"Edm.Double"\t,"D":"NaN"',
    ]


def test_lines_are_sorted_as_dotnet_sorts_names():
    names = ["b", "é", "B", "a1", "_x", "a", "𝒜", "ﬁ", "Z9"]
    written = write_fragments({name: EdmValue(Edm.INT64, number) for number, name in enumerate(names)})

    lines = written.sorted_by(tuple(names)).content.split("\n")[1:]
    assert [json.loads(f"{{{line.split(',', 2)[2]}}}").popitem()[0] for line in lines] == [
        *("B", "Z9", "_x", "a", "a1", "b", "é"),
        *("𝒜", "ﬁ"),  # a surrogate comes before U+FB01
    ]


def test_annotations_can_be_left_out():
    content = write_fragments(
        {"A": EdmValue(Edm.INT64, 5), "B": EdmValue(Edm.STRING, "\t\n")}
    ).content.encode()

    assert write_members(content) == b',"A@odata.type":"Edm.Int64","A":"5","B":"\\t\\n"'
    assert write_members(content, annotations=False) == b',"A":"5","B":"\\t\\n"'


@pytest.mark.parametrize("length", [1, 100, 70_000])
def test_annotations_of_a_large_page_can_be_left_out(length):
    content = b'\n\t,"A@odata.type":"Edm.Int64"\t,"A":"%b"\n,"B":"%b"' % (b"5" * length, b"b" * length)
    page = content * (200_000 // length)

    expected = b',"A":"%b","B":"%b"' % (b"5" * length, b"b" * length)
    assert write_members(page, annotations=False) == expected * (200_000 // length)


def test_an_entity_holds_252_properties_and_no_more():
    properties = {f"P{number}": EdmValue(Edm.INT32, number) for number in range(PROPERTY_LIMIT)}

    assert write_fragments(properties).content.count("\n") == 252
    with pytest.raises(TooManyProperties):
        write_fragments({**properties, "Q": EdmValue(Edm.INT32, 0)})


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (EdmValue(Edm.STRING, ""), 4),
        (EdmValue(Edm.STRING, "a\n\x00"), 10),
        (EdmValue(Edm.STRING, "é😀"), 10),
        (EdmValue(Edm.BINARY, b""), 4),
        (EdmValue(Edm.BINARY, b"abc"), 7),
        (EdmValue(Edm.BOOLEAN, True), 1),
        (EdmValue(Edm.INT32, 5), 4),
        (EdmValue(Edm.INT64, 5), 8),
        (EdmValue(Edm.DOUBLE, 5.0), 8),
        (EdmValue(Edm.DATETIME, 0), 8),
        (EdmValue(Edm.GUID, "c9e0b9a9-7e44-44d1-8fcb-2d8a4e6b7d10"), 16),
    ],
)
def test_the_size_of_a_value(value, size):
    assert entity_size(Entity(KEY, {"P𝐀": value})) == 4 + 2 * 5 + 8 + 2 * 3 + size


def of_size(size):
    """Make an entity of exactly that many bytes, an even number: strings of the greatest length and a rest."""
    wanted = {f"S{number:02}": text(32 * 1024) for number in range(15)}
    rest = size - entity_size(Entity(KEY, {**wanted, "R": text(0)}))
    return Entity(KEY, {**wanted, "R": text(rest // 2)})


def test_an_entity_is_limited_to_one_mebibyte():
    properties = of_size(SIZE_LIMIT - 16).properties
    largest = Entity(KEY, {**properties, "B": EdmValue(Edm.BINARY, b"ab")})
    too_large = Entity(KEY, {**properties, "B": EdmValue(Edm.BINARY, b"abc")})

    assert (entity_size(largest), entity_size(too_large)) == (1_048_576, 1_048_577)
    check_size(largest, write_fragments(largest.properties))
    with pytest.raises(EntityTooLarge):
        check_size(too_large, write_fragments(too_large.properties))


def test_the_size_is_computed_before_an_entity_can_be_too_large():
    """No entity has more bytes per character than the longest keys and as many strings as are allowed."""
    properties = {f"{number:03}": text(500_000 // PROPERTY_LIMIT - 10) for number in range(PROPERTY_LIMIT)}
    entity = Entity(EntityKey("k" * 1024, "k" * 1024), properties)

    assert 499_500 < len(write_fragments(properties).content) <= 500_000
    assert entity_size(entity) <= SIZE_LIMIT


@settings(max_examples=of_usual(50))
@given(properties)
def test_stored_entities_round_trip(values):
    texts = write_fragments(values)
    assert "".join(texts).isascii()
    assert texts.content.count("\n") == len(values)
    assert texts.content.count("\t") == 2 * sum(needs_annotation(value) for value in values.values())
    assert json.loads(texts.projection).keys() == values.keys()

    key = EntityKey("p\"'é", "")
    stored = StoredEntity(encode_entity_key(key), b"1", texts.content.encode())
    entity = read_stored(stored)
    assert entity.key == key
    assert list(entity.properties) == list(values)
    # written again rather than compared: NaN is not equal to itself, and -0.0 equal to 0.0
    assert write_fragments(entity.properties) == texts
