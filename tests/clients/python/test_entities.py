"""Single entities: insert, get, update, upsert and delete with every condition, and what the answers tell."""

from datetime import UTC, datetime
from urllib.parse import quote
from uuid import UUID

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError
from azure.data.tables import EdmType, EntityProperty, TableEntity, UpdateMode

from .conftest import BOTH, LARGE_BODIES, code_of

ADA = {"PartitionKey": "se", "RowKey": "ada", "Age": 36, "City": "London"}
KEYS = {"PartitionKey": "se", "RowKey": "ada"}
LEVELS = ["nometadata", "minimalmetadata", "fullmetadata"]
STALE = "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\""
modes = pytest.mark.parametrize("mode", [UpdateMode.MERGE, UpdateMode.REPLACE])


def accept(level):
    return {"Accept": f"application/json;odata={level}"}


def test_an_insert_omits_nulls_and_refuses_taken_keys(people):
    people.create_entity({**ADA, "Nothing": None})
    with pytest.raises(ResourceExistsError, match="The specified entity already exists") as refusal:
        people.create_entity({**KEYS, "Age": 1})
    assert refusal.value.status_code == 409
    assert '"code":"EntityAlreadyExists"' in str(refusal.value)
    assert people.get_entity("se", "ada") == ADA
    for missing in KEYS:
        # the SDK explains it by the answer of the server
        with pytest.raises(ValueError, match=f"{missing} must be present in an entity"):
            people.create_entity({name: value for name, value in ADA.items() if name != missing})


def test_an_entity_has_etag_and_timestamp_at_every_level(people):
    etag = people.create_entity(ADA)["etag"]
    for level in LEVELS:
        entity = people.get_entity("se", "ada", headers=accept(level))
        timestamp = entity.metadata["timestamp"]
        assert (entity, entity.metadata["etag"]) == (ADA, etag), level
        assert etag == f"W/\"datetime'{quote(timestamp.tables_service_value)}'\""
        assert abs(datetime.now(UTC) - timestamp).total_seconds() < 60
    assert people.get_entity("se", "ada", select="Age,Missing") == {"Age": 36, "Missing": None}
    people.upsert_entity({**TableEntity(entity), "RowKey": "copy"}, mode=UpdateMode.REPLACE)
    assert people.get_entity("se", "copy") == {**ADA, "RowKey": "copy"}


@modes
def test_an_update_changes_the_entity_read_before(people, mode):
    old = people.create_entity(ADA)["etag"]
    change = {**KEYS, "Age": 37, "Title": "Countess"}
    answer = people.update_entity(change, mode=mode)
    entity = people.get_entity("se", "ada")
    assert list(answer) == ["date", "etag", "version"]
    assert entity == ({**ADA, **change} if mode == UpdateMode.MERGE else change)
    assert entity.metadata["etag"] == answer["etag"] != old
    for level in LEVELS:
        listed = next(iter(people.list_entities(headers=accept(level))))
        listed["Age"] += 1
        people.update_entity(listed, mode=mode, match_condition=MatchConditions.IfNotModified)
    with pytest.raises(ResourceModifiedError) as refusal:
        people.update_entity(change, mode=mode, etag=old, match_condition=MatchConditions.IfNotModified)
    assert (refusal.value.status_code, code_of(refusal)) == (412, "UpdateConditionNotSatisfied")
    assert "The update condition specified in the request was not satisfied." in refusal.value.message
    assert people.get_entity("se", "ada")["Age"] == 40


@modes
def test_an_upsert_inserts_or_changes(people, mode):
    answer = people.upsert_entity(ADA, mode=mode)
    entity = people.get_entity("se", "ada")
    assert list(answer) == ["date", "etag", "version"]
    assert (entity, entity.metadata["etag"]) == (ADA, answer["etag"])
    people.upsert_entity({**KEYS, "Title": "Countess"}, mode=mode)
    kept = ADA if mode == UpdateMode.MERGE else KEYS
    assert people.get_entity("se", "ada") == {**kept, "Title": "Countess"}


def test_a_deletion_is_conditional_and_misses_an_entity_silently(people):
    condition = {"match_condition": MatchConditions.IfNotModified}
    etag = people.create_entity(ADA)["etag"]
    people.update_entity({**KEYS, "Age": 40})
    with pytest.raises(ResourceModifiedError) as refusal:
        people.delete_entity("se", "ada", etag=etag, **condition)
    assert (refusal.value.status_code, code_of(refusal)) == (412, "UpdateConditionNotSatisfied")
    people.delete_entity(people.get_entity("se", "ada"), **condition)
    assert list(people.list_entities()) == []
    for options in ({}, {"etag": STALE, **condition}):
        assert people.delete_entity("se", "nobody", **options) is None


@BOTH
@LARGE_BODIES
def test_an_entity_may_have_almost_1_mib(people):
    entity = {**KEYS, **{f"Text{number}": "ä" * 32768 for number in range(15)}}
    people.create_entity(entity)
    assert people.get_entity("se", "ada") == entity


UNUSUAL_KEYS = [
    "", " ", "a''''b", "A'aaa\"_bbbb2", "RK'@*$!%", "100%", "%2F%00%zz", "a+b c", "+,$=& ", ":@;,()[]{}<>|^`~",
    "PartitionKey='x',RowKey='y')", "a=b&c=d", "$filter", "..", "ô ä ß", "你好", "اردو", "𝔘😀", "\ue000",
    "é" * 300, "k" * 1024,
]  # fmt: skip


@BOTH
def test_keys_of_any_kind_are_served(people):
    for key in UNUSUAL_KEYS:
        keys = {"PartitionKey": key, "RowKey": key}
        people.create_entity({**keys, "Step": 1})
        people.update_entity({**keys, "Step": 2}, mode=UpdateMode.REPLACE)
        people.upsert_entity({**keys, "Merged": 3}, mode=UpdateMode.MERGE)
        expected = {**keys, "Step": 2, "Merged": 3}
        assert people.get_entity(key, key) == expected
        assert list(people.list_entities()) == [expected]
        result = people.query_entities("PartitionKey eq @key and RowKey eq @key", parameters={"key": key})
        assert list(result) == [expected]
        people.delete_entity(key, key)
        assert list(people.list_entities()) == [], key


def test_properties_of_all_types_are_stored_together(people):
    guid = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
    entity = {
        **KEYS,
        "age": 39,
        "sex": "male",
        "married": True,
        "deceased": False,
        "ratio": 3.1,
        "evenratio": 3.0,
        "large": EntityProperty(933311100, EdmType.INT64),
        "Birthday": datetime(1973, 10, 4, tzinfo=UTC),
        "birthday": datetime(1970, 10, 4, tzinfo=UTC),
        "binary": b"binary",
        "clsid": guid,
    }

    people.create_entity(TableEntity(entity))

    assert people.get_entity("se", "ada") == entity
    assert list(people.list_entities()) == [entity]
    assert people.get_entity("se", "ada", headers=accept("nometadata")) == {
        **entity,
        "large": "933311100",
        "Birthday": "1973-10-04T00:00:00Z",
        "birthday": "1970-10-04T00:00:00Z",
        "binary": "YmluYXJ5",
        "clsid": str(guid),
    }
