"""Entities and tables in OData JSON, read and written."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key, write_fragments
from storage.domain.errors import (
    DuplicatePropertiesSpecified,
    InvalidInput,
    PartKind,
    PropertyNameInvalid,
    StorageError,
    TooManyProperties,
)
from storage.domain.values import dialects
from storage.domain.values.edm import Edm, EdmValue, read_datetime
from storage.domain.values.encoding import write
from storage.protocol.accept import Format
from storage.protocol.json_format import Context, read_entity, read_new_entity, read_object, write_entity
from tests.cost import costs_less_than
from tests.examples import of_usual
from tests.strategies import keys, properties

KEY = EntityKey("p", "r")
JSON = (Format.JSON_NONE, Format.JSON_MINIMAL, Format.JSON_FULL)


# reading JSON


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{}", {}),
        (b' \r\n\t{ "A" : 1 } \n', {"A": 1}),
        (b'\xef\xbb\xbf{"A":1}', {"A": 1}),
        (b'{"A":"\\u0000\\"\\\\\\/"}', {"A": '\x00"\\/'}),
        (b'{"A":"\\ud800"}', {"A": "\ud800"}),
        (b'{"A":"\\ud83d\\ude00"}', {"A": "😀"}),
        (b'{"A":"\\ude00\\ud83d"}', {"A": "\ude00\ud83d"}),
        ('{"é":"名"}'.encode(), {"é": "名"}),
        (b'{"A":1.0,"B":-0.0,"C":1e3}', {"A": 1.0, "B": -0.0, "C": 1000.0}),
        (b'{"A":null,"B":true,"C":[1],"D":{"E":1}}', {"A": None, "B": True, "C": [1], "D": {"E": 1}}),
        (b'{"A":9223372036854775807}', {"A": 2**63 - 1}),
        (b'{"A":18446744073709551616}', {"A": 2**64}),
        (b'{"A":-100000000000000000000000}', {"A": -(10**23)}),
        (b'{"a":1,"A":2}', {"a": 1, "A": 2}),
    ],
)
def test_reads_an_object(body, expected):
    result = read_object(body)

    assert result == expected
    assert [type(value) for value in result.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    "body",
    [
        b'{"A":1,"A":2}',
        b'{"A":"x","A":1}',
        b'{"A":1,"\\u0041":1}',
        b'{"A":1,"\\u0041":"x"}',
        b'{"A":"\\"","A":"\\""}',
        b'{"\\ud800":1,"\\ud800":2}',
        b'{"A@odata.type":"Edm.Int64","A":"1","A@odata.type":"Edm.Int64"}',
        b'{"A":1,"A":[]}',
    ],
)
def test_refuses_a_name_that_comes_twice(body):
    with pytest.raises(DuplicatePropertiesSpecified):
        read_object(body)


NOT_JSON = {
    "two BOMs": b"\xef\xbb\xbf\xef\xbb\xbf{}",
    "not closed": b'{"A":1',
    "two objects": b"{}{}",
    "array": b"[]",
    "null": b"null",
    "NaN": b'{"A":NaN}',
    "Infinity": b'{"A":Infinity}',
    "leading zero": b'{"A":01}',
    "control character": b'{"A":"\n"}',
    "half an escape": b'{"A":"\\u12"}',
    "not UTF-8": b'{"A":"\xff"}',
    "a surrogate as bytes": b'{"A":"\xed\xa0\x80"}',
    "overlong": b'{"A":"\xc0\x80"}',
    "UTF-16": '{"A":1}'.encode("utf-16"),
    "deep arrays": b'{"A":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "deep objects": b'{"A":' * 200_000 + b"1" + b"}" * 200_000,
    "deep and open": b"[" * 1_000_000,
    "many digits": b'{"A":"\\ud800","B":' + b"9" * 100_000 + b"}",
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_refuses_values_other_than_objects(body):
    with pytest.raises(InvalidInput):
        read_object(body)


def test_many_digits_take_no_time():
    for digits in (b"9" * 3_000_000, b"0." + b"9" * 3_000_000, b"1e" + b"9" * 3_000_000):
        with costs_less_than(2), pytest.raises(InvalidInput):
            read_entity(read_object(b'{"A":' + digits + b',"B":[]}'), KEY, dialects.STORAGE)


def test_many_members_take_no_time():
    members = ",".join(f'"n{number}":1' for number in range(300_000))
    with costs_less_than(10), pytest.raises(DuplicatePropertiesSpecified):
        read_object(f'{{{members},"A":1,"A":1}}'.encode())
    with costs_less_than(3), pytest.raises(TooManyProperties):
        read_entity(read_object(f"{{{members}}}".encode()), KEY, dialects.STORAGE)


@pytest.mark.parametrize(
    "body",
    [
        '{"odata.#":1}',
        '{"A":1,"A@odata.#":1}',
        '{"A":1,"A@odata.type":"#"}',
        "{" + ",".join(f'"{number}#":1' for number in range(100)) + "}",
    ],
)
def test_nothing_is_kept_of_text_without_limit(body):
    length = 1_000_000 // body.count("#")
    tracemalloc.start()
    try:
        for number in range(10):
            members = read_object(body.replace("#", f"{number}" + "x" * length).encode())
            try:
                read_entity(members, KEY, dialects.STORAGE)
            except StorageError:
                pass
        members = {}
        assert tracemalloc.get_traced_memory()[0] < 3_000_000
    finally:
        tracemalloc.stop()


# an array is refused, whatever integers beyond 64 bits become in it
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(max_size=3), json_values | st.integers(), max_size=5),
    st.booleans(),
    st.sampled_from([None, 2]),
)
def test_reads_whatever_json_can_say(document, ascii_only, indent):
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)

    assert json.dumps(read_object(text.encode())) == json.dumps(document)


@given(st.lists(st.tuples(st.sampled_from("AB\u00e9\n"), json_values), min_size=1, max_size=5), st.booleans())
def test_finds_every_duplicate(pairs, ascii_only):
    members = (f"{json.dumps(name)}:{json.dumps(value, ensure_ascii=ascii_only)}" for name, value in pairs)
    body = ("{" + ",".join(members) + "}").encode()
    names = [name for name, _ in pairs]

    if len(set(names)) == len(names):
        assert list(read_object(body)) == names
    else:
        with pytest.raises(DuplicatePropertiesSpecified):
            read_object(body)


# reading an entity


def new(**members):
    return read_new_entity({"PartitionKey": "p", "RowKey": "r", **members}, dialects.STORAGE)


def update(**members):
    return read_entity(members, KEY, dialects.STORAGE)


IGNORED = {
    "odata.metadata": "http://x/$metadata#t",
    "odata.type": "a.t",
    "odata.id": "http://x/t(1)",
    "odata.etag": "W/\"datetime'x'\"",
    "odata.editLink": "t(1)",
    "odata.readLink": 5,
    "Timestamp": "2020-01-01T00:00:00Z",
    "Timestamp@odata.type": "Edm.DateTime",
    "Null": None,
    "1 bad but null": None,
    "Null2": None,
    "Null2@odata.type": "Edm.Guid",
    "Missing@odata.type": "Edm.Int64",
    "A@odata.type@odata.type": "Edm.String",
    "A@odata.other": {"x": []},
    "@odata.context": 1,
}


@pytest.mark.parametrize("read", [new, update])
def test_ignores_what_is_no_property(read):
    assert read(A=1, **IGNORED).properties == {"A": EdmValue(Edm.INT32, 1)}


@pytest.mark.parametrize("read", [new, update])
@pytest.mark.parametrize("name", ["@", "@x", "A@", "A@other", "A@custom.term", "A@ODATA.type"])
def test_keeps_values_named_like_control_information(read, name):
    with pytest.raises(PropertyNameInvalid) as refusal:
        read(**{"A": 1, name: 2})
    assert refusal.value.part == (PartKind.PROPERTY, name)


# writing

BASE = "http://127.0.0.1:10002/account1"
TICKS = read_datetime("2017-08-30T13:20:33.413914Z")


def context(level, select=None, raw_select=None):
    return Context(level, BASE, "account1", "t", select, raw_select)


def stored(key=KEY, ticks=TICKS, **wanted):
    """Return a row as a read of all its properties returns it."""
    return StoredEntity(encode_entity_key(key), b"%d" % ticks, write_fragments(wanted).content.encode())


@pytest.mark.parametrize(
    ("ticks", "expected"),
    [
        (TICKS // 10**7 * 10**7, "2017-08-30T13:20:33Z"),
        (TICKS // 10**7 * 10**7 + 1, "2017-08-30T13:20:33.0000001Z"),
        (TICKS // 10**7 * 10**7 + 2_000_000, "2017-08-30T13:20:33.2Z"),
        (read_datetime("1970-01-01T00:00:01Z"), "1970-01-01T00:00:01Z"),
        (read_datetime("9999-12-31T23:59:59.9999999Z"), "9999-12-31T23:59:59.9999999Z"),
    ],
)
@pytest.mark.parametrize("level", JSON)
def test_the_timestamp_and_the_etag_are_the_same_instant(level, ticks, expected):
    members = json.loads(write_entity(context(level), stored(ticks=ticks)))

    assert members["Timestamp"] == expected
    if level is not Format.JSON_NONE:
        assert members["odata.etag"] == f"W/\"datetime'{expected.replace(':', '%3A')}'\""


@settings(max_examples=of_usual(50))
@given(keys, keys, properties, st.sampled_from(JSON))
def test_whatever_is_stored_can_be_written(partition_key, row_key, drawn, level):
    key = EntityKey(partition_key, row_key)

    members = json.loads(write_entity(context(level), stored(key, **drawn)))

    assert (members["PartitionKey"], members["RowKey"]) == key
    assert {name: members[name] for name in drawn} == {
        name: json.loads(write(value)) for name, value in drawn.items()
    }


def test_a_hostile_selection_cannot_break_the_json():
    row = StoredEntity(encode_entity_key(KEY), b"%d" % TICKS, b',"A":null')

    body = write_entity(context(Format.JSON_MINIMAL, ("A",), 'A",\\"x":\xff\n'), row)

    assert json.loads(body)["odata.metadata"].endswith('&$select=A",\\"x":\xff\n')
