"""Operations of a bulk edit on one entity: what they touch, what they leave byte for byte, and what stops them."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.entities.entity import (
    Entity,
    EntityKey,
    StoredEntity,
    encode_entity_key,
    quote_name,
    read_stored,
    write_stored,
)
from storage.domain.entities.row_editing import EditedRow
from storage.domain.errors import InvalidInput
from storage.domain.values.edm import FIRST_COSMOS_TICK, Edm, EdmValue
from storage.domain.values.encoding import project
from storage.domain.values.kinds import AccountKind
from storage.editing.bulk_edit import (
    Editor,
    InvalidOperation,
    NotEdited,
    Obstacle,
    ObstacleKind,
    read_operations,
)
from storage.editing.conversions import Loss
from storage.editing.input_context import InputContext
from tests import strategies
from tests.examples import of_usual

NOW = datetime(2026, 11, 26, tzinfo=UTC)
KEY = EntityKey("p", "r")


def stored(key=KEY, kind=AccountKind.STORAGE, **properties):
    return write_stored(Entity(key, properties, kind), 5)


def edit(entity, *operations, kind=AccountKind.STORAGE, **options):
    return Editor(read_operations(operations, NOW), InputContext(NOW, kind), **options).edit(entity)


def properties(edited):
    content = edited.content.encode()
    return dict(read_stored(StoredEntity(encode_entity_key(edited.key), b"5", content)).properties)


def obstacle(entity, *operations, **options):
    with pytest.raises(NotEdited) as found:
        edit(entity, *operations, **options)
    return found.value.obstacle


def text(value):
    return EdmValue(Edm.STRING, value)


def number(value):
    return EdmValue(Edm.INT32, value)


def set_(name, expression, **members):
    return {"op": "set", "property": name, "expression": expression, **members}


def test_operations_apply_in_order():
    entity = stored(A=number(1), B=text("b"), C=EdmValue(Edm.INT64, 5), D=EdmValue(Edm.BINARY, b"\0"))
    edited = edit(
        entity,
        set_("A", "A + 1"),
        set_("Sum", "A + C"),
        {"op": "rename", "property": "C", "to": "Total"},
        {"op": "copy", "property": "D", "to": "E"},
        {"op": "remove", "property": "D"},
        {"op": "convert", "property": "Total", "type": "String"},
        {"op": "key", "row_key": "concat(RowKey, '-', Total)"},
    )
    assert properties(edited) == {
        "A": number(2),
        "B": text("b"),
        "Total": text("5"),
        "Sum": EdmValue(Edm.INT64, 7),
        "E": EdmValue(Edm.BINARY, b"\0"),
    }
    assert list(properties(edited)) == ["A", "B", "Total", "Sum", "E"]  # they keep their places
    assert (edited.old_key, edited.key) == (KEY, EntityKey("p", "r-5"))


def test_presence_and_missing_values():
    entity = stored(A=number(1))
    assert properties(edit(entity, set_("A", "5", presence="absent")))["A"] == number(1)
    assert properties(edit(entity, set_("B", "5", presence="absent")))["B"] == number(5)
    assert edit(entity, set_("B", "5", presence="present")).is_unchanged
    assert edit(entity, set_("A", "Missing * 2")).is_unchanged
    assert edit(entity, {"op": "convert", "property": "Missing", "type": "Int64"}).is_unchanged
    assert edit(entity, {"op": "rename", "property": "Missing", "to": "A"}).is_unchanged
    assert edit(entity, {"op": "remove", "property": "Missing"}).is_unchanged
    assert edit(entity, {"op": "delete"}).content is None


def test_a_second_copy_has_the_changes_before_it():
    entity = stored(A=number(7))
    edited = edit(entity, set_("A", "A + 1"), {"op": "second-copy", "row_key": "pad(A, 3) + RowKey"})
    assert (edited.old_key, edited.key, edited.stored.content) == (
        KEY,
        EntityKey("p", "008r"),
        entity.content,
    )
    assert (properties(edited), edited.is_copy, edited.is_moved, edited.is_unchanged) == (
        *({"A": number(8)}, True, False, False),
    )


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (set_("A", "upper(B)"), Obstacle(ObstacleKind.WRONG_TYPE, "A", "upper of Int32")),
        (set_("A", "B + 2147483647"), Obstacle(ObstacleKind.OUT_OF_RANGE, "A", "Int32")),
        (set_("A", "B div 0"), Obstacle(ObstacleKind.DIVISION_BY_ZERO, "A")),
        (set_("A", "Long + Long"), Obstacle(ObstacleKind.TOO_LONG, "A", "have a value of more than 64 KiB")),
        (
            {"op": "convert", "property": "Name", "type": "Int32"},
            Obstacle(ObstacleKind.NOT_CONVERTIBLE, "Name", "not a whole number"),
        ),
        (
            {"op": "convert", "property": "Half", "type": "Int32"},
            Obstacle(ObstacleKind.LOSS, "Half", Loss.FRACTION),
        ),
        ({"op": "rename", "property": "B", "to": "Name"}, Obstacle(ObstacleKind.PROPERTY_EXISTS, "Name")),
        ({"op": "copy", "property": "B", "to": "Name"}, Obstacle(ObstacleKind.PROPERTY_EXISTS, "Name")),
        ({"op": "key", "row_key": "'a/b'"}, Obstacle(ObstacleKind.INVALID_KEY, "", "OutOfRangeInput")),
        ({"op": "key", "row_key": "Long"}, Obstacle(ObstacleKind.INVALID_KEY, "", "KeyValueTooLarge")),
        ({"op": "key", "row_key": "B"}, Obstacle(ObstacleKind.WRONG_TYPE, "", "Int32")),
    ],
)
def test_obstacles(operation, expected):
    entity = stored(B=number(1), Name=text("Ada"), Half=EdmValue(Edm.DOUBLE, 0.5), Long=text("x" * 20_000))
    assert obstacle(entity, set_("Before", "1"), operation) == expected


def test_permitted_replacements_and_losses_are_applied():
    entity = stored(A=number(1), B=EdmValue(Edm.DOUBLE, 2.5))
    renamed = edit(entity, {"op": "rename", "property": "A", "to": "B", "replace": True})
    assert properties(renamed) == {"B": number(1)}
    convert = {"op": "convert", "property": "B", "type": "Edm.Int32"}
    edited = edit(entity, convert, allows_loss=True)
    assert properties(edited) == {"A": number(1), "B": number(2)}
    assert edited.losses == [("B", Loss.FRACTION)]


def test_limits_of_entities():
    many = stored(**{f"P{place}": number(place) for place in range(252)})
    assert obstacle(many, set_("More", "1")) == Obstacle(ObstacleKind.TOO_MANY_PROPERTIES)
    assert len(properties(edit(many, {"op": "rename", "property": "P0", "to": "Q"}))) == 252
    large = stored(**{f"P{place}": text("x" * 32_768) for place in range(15)})
    assert obstacle(large, set_("More", "P0")) == Obstacle(ObstacleKind.TOO_LARGE)
    cosmos = stored(kind=AccountKind.COSMOS, A=text("x" * 40_000))
    assert len(properties(edit(cosmos, set_("B", "A + A"), kind=AccountKind.COSMOS))["B"].value) == 80_000
    first_day = stored(kind=AccountKind.COSMOS, A=text("0001-01-01T00:00:00Z"))
    convert = {"op": "convert", "property": "A", "type": "DateTime"}
    converted = properties(edit(first_day, convert, kind=AccountKind.COSMOS))
    assert converted == {"A": EdmValue(Edm.DATETIME, FIRST_COSMOS_TICK)}
    by_pattern = set_("A", "datetime('01.01.0001', 'dd.MM.yyyy')")
    assert properties(edit(first_day, by_pattern, kind=AccountKind.COSMOS)) == converted
    assert obstacle(first_day, convert).kind is ObstacleKind.NOT_CONVERTIBLE


@pytest.mark.parametrize(
    ("operations", "index", "member", "words"),
    [
        ([], 0, "", "1 to 100 operations"),
        ([{"op": "set"}], 0, "property", "needs property"),
        ([{"op": "explode"}], 0, "op", "one of set, remove"),
        ([{"op": ["set"]}], 0, "op", "one of set"),
        ([{"op": "remove", "property": "A", "to": "B"}], 0, "to", "has no to"),
        ([{"op": "remove", "property": 5}], 0, "property", "text is expected"),
        ([{"op": "remove", "property": "a b"}], 0, "property", "property name"),
        ([{"op": "remove", "property": "Timestamp"}], 0, "property", "set by the server"),
        ([{"op": "remove", "property": "RowKey"}], 0, "property", "operation key"),
        ([{"op": "remove", "property": "A"}, set_("A", "1 +")], 1, "expression", "position 4"),
        ([set_("A", "1", presence="never")], 0, "presence", "all, absent, present"),
        ([{"op": "copy", "property": "A", "to": "B", "replace": 1}], 0, "replace", "true or false"),
        ([{"op": "convert", "property": "A", "type": "Decimal"}], 0, "type", "one of String"),
        ([{"op": "key"}], 0, "row_key", "needs partition_key"),
        ([{"op": "key", "row_key": "5"}], 0, "row_key", "A key must be a String"),
        ([{"op": "delete"}, {"op": "remove", "property": "A"}], 0, "op", "cannot be edited too"),
        ([{"op": "key", "row_key": "'a'"}, {"op": "key", "row_key": "'b'"}], 1, "op", "once"),
        ([{"op": "second-copy"}], 0, "row_key", "another PartitionKey, another RowKey or another table"),
        ([{"op": "second-copy", "row_key": "5"}], 0, "row_key", "A key must be a String"),
        ([{"op": "second-copy", "table": 5}], 0, "table", "text is expected"),
        (
            [{"op": "second-copy", "table": "t", "delete_left_over": 1}],
            0,
            "delete_left_over",
            "true or false",
        ),
        ([{"op": "second-copy", "table": "t"}, set_("A", "1")], 0, "op", "the last operation"),
        (
            [{"op": "key", "row_key": "'a'"}, {"op": "second-copy", "table": "t"}],
            *(1, "op", "second copies or changes keys"),
        ),
    ],
)
def test_invalid_operations(operations, index, member, words):
    with pytest.raises(InvalidOperation, match=words) as found:
        read_operations(operations, NOW)
    assert (found.value.index, found.value.member) == (index, member)


@settings(max_examples=of_usual(40))
@given(strategies.properties, st.data())
def test_untouched_properties_stay_byte_for_byte(content, data):
    entity = stored(**content)
    names = st.sampled_from([*content, "New"])
    operations = data.draw(
        st.lists(
            st.one_of(
                st.tuples(st.sampled_from(["rename", "copy"]), names, names).map(
                    lambda it: {"op": it[0], "property": it[1], "to": it[2], "replace": True}
                ),
                names.map(lambda it: {"op": "remove", "property": it}),
                st.tuples(names, names).map(lambda it: set_(*it)),
            ),
            min_size=1,
            max_size=4,
        )
    )
    try:
        edited = edit(entity, *operations)
    except (NotEdited, InvalidInput):  # a name that is a literal, such as true
        return
    touched = {it[name] for it in operations for name in ("property", "to") if name in it}
    before, after = lines(entity.content), lines(edited.content.encode())
    kept = {quote_name(name)[1:-1] for name in content.keys() - touched}
    assert {name: before[name] for name in kept} == {name: after[name] for name in kept}
    # the model: a dict of values
    model = dict(content)
    for it in operations:
        apply(model, it)
    assert {name: repr(value) for name, value in properties(edited).items()} == {
        name: repr(value) for name, value in model.items()
    }
    # the projection of the row is that of the new values
    projection = {name: json.loads(project(value)) for name, value in content.items()}
    projection |= json.loads(edited.patch)
    expected = {name: json.loads(project(value)) for name, value in model.items()}
    assert {name: repr(it) for name, it in projection.items() if it is not None} == {
        name: repr(it) for name, it in expected.items()
    }


def lines(content):
    """Return the line of each property by the property's name as it is written."""
    return {line.split('"')[1].removesuffix("@odata.type"): line for line in content.decode().split("\n")[1:]}


def apply(model, operation):
    name, to = operation["property"], operation.get("to")
    match operation["op"]:
        case "set":
            value = model.get(operation["expression"])
            if value is not None:
                model[name] = value
        case "remove":
            model.pop(name, None)
        case "copy" if name in model:
            model[to] = model[name]
        case "rename" if name in model and name != to:
            model[to] = model.pop(name)


@settings(max_examples=of_usual(40))
@given(strategies.properties)
def test_an_empty_edit_changes_no_byte(content):
    entity = stored(**content)
    row = EditedRow(entity, AccountKind.STORAGE)
    assert row.write().encode() == entity.content
    assert row.patch == "{}"
    assert {name: repr(row.read(name)) for name in content} == {
        name: repr(it) for name, it in content.items()
    }
