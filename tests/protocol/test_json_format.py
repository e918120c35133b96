"""Entities and tables in OData JSON, read and written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.entities.entity import Entity, EntityKey, StoredEntity, encode_entity_key, write_fragments
from storage.domain.errors import (
    DuplicatePropertiesSpecified,
    InvalidInput,
    KeyValueTooLarge,
    OutOfRangeInput,
    PropertiesNeedValue,
    PropertyNameInvalid,
    PropertyNameTooLong,
    PropertyValueTooLarge,
)
from storage.domain.values.edm import Edm, EdmValue, read_datetime
from storage.domain.values.encoding import write
from storage.domain.values.names import KEY_LENGTH_LIMIT
from storage.protocol.accept import Format
from storage.protocol.json_format import (
    Context,
    entity_link,
    read_entity,
    read_new_entity,
    read_object,
    read_table_name,
    write_entity,
    write_page,
    write_table,
    write_tables,
)
from tests.cost import costs_less_than
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
    found = read_object(body)

    assert found == expected
    assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    "body",
    [
        b'{"A":1,"A":1}',
        b'{"A":1,"A":2}',
        b'{"A":"x","A":1}',
        b'{"A":1,"A":"x"}',
        b'{"A":"x","B":"y","A":"z"}',
        b'{"A":null,"A":null}',
        b'{"A":1,"\\u0041":1}',
        b'{"A":1,"\\u0041":"x"}',
        b'{"A":"\\"","A":"\\""}',
        b'{"\\ud800":1,"\\ud800":2}',
        b'{"PartitionKey":"p","PartitionKey":"q","RowKey":"r"}',
        b'{"A@odata.type":"Edm.Int64","A":"1","A@odata.type":"Edm.Int64"}',
        b'{"A":1,"A":[]}',
        b'{"A":{},"A":""}',
    ],
)
def test_refuses_a_name_that_comes_twice(body):
    with pytest.raises(DuplicatePropertiesSpecified):
        read_object(body)


NOT_JSON = {
    "nothing": b"",
    "space": b" ",
    "two BOMs": b"\xef\xbb\xbf\xef\xbb\xbf{}",
    "not closed": b'{"A":1',
    "comma": b'{"A":1,}',
    "single quotes": b"{'A':1}",
    "no quotes": b"{A:1}",
    "two objects": b"{}{}",
    "comment": b"{} // comment",
    "array": b"[]",
    "array of objects": b'[{"A":1}]',
    "string": b'"A"',
    "number": b"5",
    "null": b"null",
    "NaN": b'{"A":NaN}',
    "Infinity": b'{"A":Infinity}',
    "minus Infinity": b'{"A":-Infinity}',
    "leading zero": b'{"A":01}',
    "plus": b'{"A":+1}',
    "point": b'{"A":1.}',
    "hexadecimal": b'{"A":0x10}',
    "control character": b'{"A":"\n"}',
    "zero byte": b'{"A":"\x00"}',
    "bad escape": b'{"A":"\\x"}',
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
def test_refuses_what_is_no_object(body):
    with pytest.raises(InvalidInput):
        read_object(body)


def test_many_digits_take_no_time():
    for digits in (b"9" * 3_000_000, b"0." + b"9" * 3_000_000, b"1e" + b"9" * 3_000_000):
        with costs_less_than(2), pytest.raises(InvalidInput):
            read_entity(read_object(b'{"A":' + digits + b',"B":[]}'), KEY, KEY_LENGTH_LIMIT)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(max_size=3), json_values, max_size=5), st.booleans(), st.sampled_from([None, 2])
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


# reading a table


def test_reads_the_name_of_a_table():
    assert read_table_name(read_object(b'{"TableName":"People"}')) == "People"
    body = b'{"odata.type":"x","TableName":"People","TableName@odata.type":"Edm.String"}'
    assert read_table_name(read_object(body)) == "People"


@pytest.mark.parametrize("body", [b"{}", b'{"TableName":null}', b'{"tablename":"people"}'])
def test_a_table_needs_a_name(body):
    with pytest.raises(PropertiesNeedValue):
        read_table_name(read_object(body))


@pytest.mark.parametrize("body", [b'{"TableName":5}', b'{"TableName":["a"]}', b"[]"])
def test_refuses_a_name_that_is_none(body):
    with pytest.raises(InvalidInput):
        read_table_name(read_object(body))


# reading an entity


def new(**members):
    return read_new_entity({"PartitionKey": "p", "RowKey": "r", **members}, KEY_LENGTH_LIMIT)


def update(**members):
    return read_entity(members, KEY, KEY_LENGTH_LIMIT)


def test_reads_a_new_entity():
    found = new(A=1, B="2", **{"B@odata.type": "Edm.Int64"})

    assert found == Entity(KEY, {"A": EdmValue(Edm.INT32, 1), "B": EdmValue(Edm.INT64, 2)})


def test_an_annotation_may_come_before_or_after_its_property():
    for names in (["A", "A@odata.type"], ["A@odata.type", "A"]):
        members = {"A": "5", "A@odata.type": "Edm.Int64"}
        assert update(**{name: members[name] for name in names}).properties == {"A": EdmValue(Edm.INT64, 5)}


def test_properties_keep_their_order():
    assert list(new(B=1, a=2, A=3, _=4).properties) == ["B", "a", "A", "_"]


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
    "A@other": {"x": []},
    "@": 1,
}


@pytest.mark.parametrize("read", [new, update])
def test_ignores_what_is_no_property(read):
    assert read(A=1, **IGNORED).properties == {"A": EdmValue(Edm.INT32, 1)}


def test_a_timestamp_is_ignored_whatever_it_is():
    values: list[object] = [5, "no time", None, [], {"a": 1}]
    for value in values:
        assert new(Timestamp=value).properties == {}


def test_names_that_look_like_system_properties_are_not():
    members = {
        name: name for name in ("ETag", "etag", "timestamp", "partitionkey", "Rowkey", "odata", "odataX")
    }

    assert list(new(**members).properties) == list(members)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("123", PropertyNameInvalid),
        ("a-b", PropertyNameInvalid),
        ("a b", PropertyNameInvalid),
        ("", PropertyNameInvalid),
        ("a.b", PropertyNameInvalid),
        ("\ud800", PropertyNameInvalid),
        ("a" * 256, PropertyNameTooLong),
    ],
)
@pytest.mark.parametrize("read", [new, update])
def test_refuses_bad_names(read, name, error):
    for _ in range(2):
        with pytest.raises(error):
            read(**{name: 1})


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"A": []}, InvalidInput),
        ({"A": {}}, InvalidInput),
        ({"A": 2**63 - 1}, InvalidInput),
        ({"A": 2**31, "A@odata.type": "Edm.Int32"}, InvalidInput),
        ({"A": "x", "A@odata.type": "Edm.Int64"}, InvalidInput),
        ({"A": "x", "A@odata.type": "Edm.Nothing"}, InvalidInput),
        ({"A": "x", "A@odata.type": 5}, InvalidInput),
        ({"A": "x", "A@odata.type": ["Edm.String"]}, InvalidInput),
        ({"A": "0001-01-01T00:00:00Z", "A@odata.type": "Edm.DateTime"}, OutOfRangeInput),
        ({"A": "x" * 32_769}, PropertyValueTooLarge),
    ],
)
@pytest.mark.parametrize("read", [new, update])
def test_refuses_bad_values(read, members, error):
    with pytest.raises(error):
        read(**members)


# keys


def test_a_new_entity_may_have_empty_keys():
    found = read_new_entity({"PartitionKey": "", "RowKey": ""}, KEY_LENGTH_LIMIT)

    assert found == Entity(EntityKey("", ""), {})


def test_keys_may_be_annotated_as_the_strings_they_are():
    assert new(**{"PartitionKey@odata.type": "Edm.String", "RowKey@odata.type": "Edm.String"}).key == KEY


@pytest.mark.parametrize(
    "members",
    [{}, {"PartitionKey": "p"}, {"RowKey": "r"}, {"PartitionKey": None, "RowKey": "r"}, {"TableName": "x"}],
)
def test_a_new_entity_needs_both_keys(members):
    with pytest.raises(PropertiesNeedValue):
        read_new_entity(members, KEY_LENGTH_LIMIT)


@pytest.mark.parametrize("value", [5, True, 1.5, [], {}])
@pytest.mark.parametrize("name", ["PartitionKey", "RowKey"])
def test_the_keys_of_a_new_entity_are_strings(name, value):
    with pytest.raises(InvalidInput):
        new(**{name: value})


@pytest.mark.parametrize(
    "note", ["Edm.DateTime", "Edm.Guid", "Edm.Binary", "Edm.Double", "Edm.Int64", "x", 5]
)
@pytest.mark.parametrize("name", ["PartitionKey", "RowKey"])
def test_the_keys_of_a_new_entity_are_annotated_as_nothing_else(name, note):
    with pytest.raises(InvalidInput):
        new(**{f"{name}@odata.type": note})


@pytest.mark.parametrize(
    ("key", "error"), [("a/b", OutOfRangeInput), ("\x00", OutOfRangeInput), ("x" * 1025, KeyValueTooLarge)]
)
@pytest.mark.parametrize("name", ["PartitionKey", "RowKey"])
def test_refuses_bad_keys(name, key, error):
    with pytest.raises(error):
        new(**{name: key})
    with pytest.raises(error):
        read_entity(
            {}, EntityKey(**{"partition_key": "p", "row_key": "r", snake(name): key}), KEY_LENGTH_LIMIT
        )


def snake(name):
    return {"PartitionKey": "partition_key", "RowKey": "row_key"}[name]


def test_the_limit_of_keys_may_be_lower():
    with pytest.raises(KeyValueTooLarge):
        read_new_entity({"PartitionKey": "p", "RowKey": "r" * 513}, 512)


def test_the_keys_of_an_update_are_those_of_the_uri_whatever_the_body_says():
    members = {
        "PartitionKey": "other",
        "PartitionKey@odata.type": "Edm.DateTime",
        "RowKey": 5,
        "RowKey@odata.type": "Edm.Guid",
        "A": 1,
    }

    assert update(**members) == Entity(KEY, {"A": EdmValue(Edm.INT32, 1)})


# writing

BASE = "http://127.0.0.1:10002/account1"
TICKS = read_datetime("2017-08-30T13:20:33.413914Z")
ETAG = "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\""
PROPERTIES = {
    "n": EdmValue(Edm.INT32, 5),
    "big": EdmValue(Edm.INT64, 2**63 - 1),
    "d": EdmValue(Edm.DOUBLE, 10.0),
    "s": EdmValue(Edm.STRING, "é"),
}


def context(level, select=None, raw_select=None):
    return Context(level, BASE, "account1", "t", select, raw_select)


def stored(key=KEY, ticks=TICKS, level=Format.JSON_FULL, **wanted):
    """A row as a read of all its properties finds it."""
    _, annotations, values = write_fragments(wanted)
    content = values if level is Format.JSON_NONE else annotations + values
    return StoredEntity(encode_entity_key(key), b"%d" % ticks, content.encode())


def test_an_entity_without_metadata():
    body = write_entity(context(Format.JSON_NONE), stored(level=Format.JSON_NONE, **PROPERTIES))

    assert json.loads(body, object_pairs_hook=list) == [
        ("PartitionKey", "p"),
        ("RowKey", "r"),
        ("Timestamp", "2017-08-30T13:20:33.413914Z"),
        ("n", 5),
        ("big", "9223372036854775807"),
        ("d", 10.0),
        ("s", "é"),
    ]


def test_an_entity_with_minimal_metadata():
    body = write_entity(context(Format.JSON_MINIMAL), stored(**PROPERTIES))

    assert body.startswith(
        b'{"odata.metadata":"http://127.0.0.1:10002/account1/$metadata#t/@Element",'
        b'"odata.etag":"W/\\"datetime\'2017-08-30T13%3A20%3A33.413914Z\'\\"",'
        b'"PartitionKey":"p","RowKey":"r","Timestamp":"2017-08-30T13:20:33.413914Z"'
    )
    members = json.loads(body)
    assert members["odata.etag"] == ETAG
    assert (members["big@odata.type"], members["big"]) == ("Edm.Int64", "9223372036854775807")
    assert "Timestamp@odata.type" not in members


def test_an_entity_with_full_metadata():
    members = json.loads(
        write_entity(context(Format.JSON_FULL), stored(**PROPERTIES)), object_pairs_hook=list
    )

    assert members[:8] == [
        ("odata.metadata", f"{BASE}/$metadata#t/@Element"),
        ("odata.type", "account1.t"),
        ("odata.id", f"{BASE}/t(PartitionKey='p',RowKey='r')"),
        ("odata.etag", ETAG),
        ("odata.editLink", "t(PartitionKey='p',RowKey='r')"),
        ("PartitionKey", "p"),
        ("RowKey", "r"),
        ("Timestamp@odata.type", "Edm.DateTime"),
    ]
    assert members[8] == ("Timestamp", "2017-08-30T13:20:33.413914Z")
    assert [name for name, _ in members[9:]] == ["big@odata.type", "n", "big", "d", "s"]


@pytest.mark.parametrize("level", JSON)
def test_a_page(level):
    found = [stored(EntityKey("p", str(number)), level=level, **PROPERTIES) for number in range(3)]

    body = json.loads(write_page(context(level), found))

    assert body.pop("odata.metadata", None) == (None if level is Format.JSON_NONE else f"{BASE}/$metadata#t")
    assert list(body) == ["value"]
    rows = [json.loads(write_entity(context(level), row)) for row in found]
    for row in rows:
        row.pop("odata.metadata", None)
    assert body["value"] == rows


@pytest.mark.parametrize("level", JSON)
def test_an_empty_page(level):
    assert json.loads(write_page(context(level), []))["value"] == []


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


@given(keys, keys, properties, st.sampled_from(JSON))
def test_whatever_is_stored_can_be_written(partition_key, row_key, wanted, level):
    key = EntityKey(partition_key, row_key)

    members = json.loads(write_entity(context(level), stored(key, level=level, **wanted)))

    assert (members["PartitionKey"], members["RowKey"]) == key
    assert {name: members[name] for name in wanted} == {
        name: json.loads(write(value)) for name, value in wanted.items()
    }


# $select: the content is what was selected, the head what was selected of the system properties

CONTROL = ["odata.type", "odata.id", "odata.etag", "odata.editLink"]


@pytest.mark.parametrize(
    ("level", "control"),
    [(Format.JSON_NONE, []), (Format.JSON_MINIMAL, ["odata.etag"]), (Format.JSON_FULL, CONTROL)],
)
@pytest.mark.parametrize(
    ("select", "content", "expected"),
    [
        (("A",), b',"A":1', ["A"]),
        (("A", "B"), b',"A":1,"B":null', ["A", "B"]),
        (("RowKey",), b"", ["RowKey"]),
        (("PartitionKey",), b"", ["PartitionKey"]),
        (("A", "RowKey", "PartitionKey"), b',"A":1', ["PartitionKey", "RowKey", "A"]),
        (("Timestamp",), b"", ["Timestamp"]),
        (("Timestamp", "A"), b',"A":1', ["Timestamp", "A"]),
        (
            ("PartitionKey", "RowKey", "Timestamp", "A"),
            b',"A":1',
            ["PartitionKey", "RowKey", "Timestamp", "A"],
        ),
        (("RowKey", "Timestamp"), b"", ["RowKey", "Timestamp"]),
    ],
)
def test_select(level, control, select, content, expected):
    row = StoredEntity(encode_entity_key(EntityKey("ö'\"", "r")), b"%d" % TICKS, content)

    body = json.loads(write_page(context(level, select, ",".join(select)), [row]))

    assert body.get("odata.metadata") == (
        None if level is Format.JSON_NONE else f"{BASE}/$metadata#t&$select={','.join(select)}"
    )
    (members,) = body["value"]
    typed = ["Timestamp@odata.type"] if level is Format.JSON_FULL and "Timestamp" in select else []
    wanted = [*control, *expected]
    assert [name for name in members if name not in typed] == wanted
    assert set(typed) <= set(members)
    assert members.get("PartitionKey", "ö'\"") == "ö'\""


def test_the_selection_of_a_single_entity_is_said_as_it_was_sent():
    row = StoredEntity(encode_entity_key(KEY), b"%d" % TICKS, b',"age":1,"sex":null')

    body = json.loads(write_entity(context(Format.JSON_MINIMAL, ("age", "sex"), "age,%20sex"), row))

    assert body["odata.metadata"] == f"{BASE}/$metadata#t/@Element&$select=age,%20sex"


def test_what_was_sent_as_selection_cannot_break_the_json():
    row = StoredEntity(encode_entity_key(KEY), b"%d" % TICKS, b',"A":null')

    body = write_entity(context(Format.JSON_MINIMAL, ("A",), 'A",\\"x":\xff\n'), row)

    assert json.loads(body)["odata.metadata"].endswith('&$select=A",\\"x":\xff\n')


# links


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("simple1", "simple1"),
        ("", ""),
        ("p-ô- -'-\"-%20-%27-pk", "p-%C3%B4-%20-''-%22-%2520-%2527-pk"),
        ("O'Brien", "O''Brien"),
        ("a+b c", "a%2Bb%20c"),
        ("a,b=(c)", "a%2Cb%3D%28c%29"),
        ("-._~", "-._~"),
        ("😀", "%F0%9F%98%80"),
        ("é1", "%C3%A91"),
        ("٣", "%D9%A3"),
        ("&$@:;!*", "%26%24%40%3A%3B%21%2A"),
    ],
)
def test_keys_in_links(key, expected):
    assert entity_link("t", key, "r") == f"t(PartitionKey='{expected}',RowKey='r')"
    assert entity_link("t", "p", key) == f"t(PartitionKey='p',RowKey='{expected}')"


def test_links_of_full_metadata_are_quoted_the_same():
    key = EntityKey("O'Brien ö", '"')

    members = json.loads(write_entity(context(Format.JSON_FULL), stored(key)))

    assert members["odata.editLink"] == "t(PartitionKey='O''Brien%20%C3%B6',RowKey='%22')"
    assert members["odata.id"] == f"{BASE}/{members['odata.editLink']}"


# tables


def test_tables_at_each_level():
    assert json.loads(write_tables(context(Format.JSON_NONE), ["a1b", "People"])) == {
        "value": [{"TableName": "a1b"}, {"TableName": "People"}]
    }
    assert json.loads(write_tables(context(Format.JSON_MINIMAL), ["People"])) == {
        "odata.metadata": f"{BASE}/$metadata#Tables",
        "value": [{"TableName": "People"}],
    }
    assert json.loads(write_tables(context(Format.JSON_FULL), ["People"]), object_pairs_hook=list) == [
        ("odata.metadata", f"{BASE}/$metadata#Tables"),
        (
            "value",
            [
                [
                    ("odata.type", "account1.Tables"),
                    ("odata.id", f"{BASE}/Tables('People')"),
                    ("odata.editLink", "Tables('People')"),
                    ("TableName", "People"),
                ]
            ],
        ),
    ]


@pytest.mark.parametrize("level", JSON)
def test_one_table_and_no_table(level):
    one = json.loads(write_table(context(level), "People"))

    assert one.pop("odata.metadata", None) == (
        None if level is Format.JSON_NONE else f"{BASE}/$metadata#Tables/@Element"
    )
    assert one == json.loads(write_tables(context(level), ["People"]))["value"][0]
    assert json.loads(write_tables(context(level), []))["value"] == []
