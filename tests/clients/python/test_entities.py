"""Single entities: insert, get, update, upsert and delete with every condition, and what the answers tell."""

import re
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import UUID

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    ResourceExistsError,
    ResourceModifiedError,
)
from azure.data.tables import EdmType, EntityProperty, TableEntity, UpdateMode

from .conftest import BOTH, LARGE_BODIES, code_of

GUID = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
ADA = {"PartitionKey": "se", "RowKey": "ada", "Age": 36, "City": "London"}
KEYS = {"PartitionKey": "se", "RowKey": "ada"}
MODES = [UpdateMode.MERGE, UpdateMode.REPLACE]
ETAG = re.compile(r"W/\"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,6}[1-9]|\.[1-9])?Z'\"")
STALE = "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\""
LEVELS = ["nometadata", "minimalmetadata", "fullmetadata"]


def accept(level):
    return {"Accept": f"application/json;odata={level}"}


class TestInsert:
    def test_stores_the_entity(self, people):
        people.create_entity(ADA)

        assert people.get_entity("se", "ada") == ADA

    def test_leaves_out_properties_without_a_value(self, people):
        people.create_entity({**ADA, "Nothing": None})

        assert people.get_entity("se", "ada") == ADA

    def test_refuses_keys_that_are_taken(self, people):
        people.create_entity(ADA)

        with pytest.raises(ResourceExistsError, match="The specified entity already exists") as refusal:
            people.create_entity({**KEYS, "Age": 1})

        assert refusal.value.status_code == 409
        assert '"code":"EntityAlreadyExists"' in str(refusal.value)
        assert people.get_entity("se", "ada") == ADA

    @pytest.mark.parametrize("missing", ["PartitionKey", "RowKey"])
    def test_refuses_to_do_without_a_key_so_that_the_sdk_explains_it(self, people, missing):
        with pytest.raises(ValueError, match=f"{missing} must be present in an entity"):
            people.create_entity({name: value for name, value in ADA.items() if name != missing})


class TestGet:
    @pytest.mark.parametrize("level", LEVELS)
    def test_knows_etag_and_timestamp_at_every_level(self, people, level):
        etag = people.create_entity(ADA)["etag"]

        entity = people.get_entity("se", "ada", headers=accept(level))

        assert entity == ADA
        assert entity.metadata["etag"] == etag
        timestamp = entity.metadata["timestamp"]
        assert etag == f"W/\"datetime'{quote(timestamp.tables_service_value)}'\""
        assert abs(datetime.now(UTC) - timestamp).total_seconds() < 60

    def test_selects_a_missing_property_as_none(self, people):
        people.create_entity(ADA)

        assert people.get_entity("se", "ada", select="Age,Missing") == {"Age": 36, "Missing": None}


@pytest.mark.parametrize("mode", MODES)
class TestUpdate:
    change = {**KEYS, "Age": 37, "Title": "Countess"}

    def expected(self, mode):
        return {**ADA, **self.change} if mode == UpdateMode.MERGE else self.change

    def test_changes_an_entity(self, people, mode):
        old = people.create_entity(ADA)["etag"]

        answer = people.update_entity(self.change, mode=mode)

        entity = people.get_entity("se", "ada")
        assert list(answer) == ["date", "etag", "version"]
        assert entity == self.expected(mode)
        assert entity.metadata["etag"] == answer["etag"] != old

    @pytest.mark.parametrize("level", LEVELS)
    def test_takes_the_etag_from_an_entity_it_listed(self, people, mode, level):
        people.create_entity(ADA)
        result = next(iter(people.list_entities(headers=accept(level))))
        result["Age"] = 38

        people.update_entity(result, mode=mode, match_condition=MatchConditions.IfNotModified)

        assert people.get_entity("se", "ada")["Age"] == 38

    def test_refuses_to_overwrite_a_change(self, people, mode):
        etag = people.create_entity(ADA)["etag"]
        people.update_entity({**KEYS, "Age": 40})

        with pytest.raises(ResourceModifiedError) as refusal:
            people.update_entity(
                self.change, mode=mode, etag=etag, match_condition=MatchConditions.IfNotModified
            )

        assert refusal.value.status_code == 412
        assert code_of(refusal) == "UpdateConditionNotSatisfied"
        assert "The update condition specified in the request was not satisfied." in refusal.value.message
        assert people.get_entity("se", "ada") == {**ADA, "Age": 40}


@pytest.mark.parametrize("mode", MODES)
class TestUpsert:
    def test_inserts_an_entity(self, people, mode):
        answer = people.upsert_entity(ADA, mode=mode)

        entity = people.get_entity("se", "ada")
        assert list(answer) == ["date", "etag", "version"]
        assert entity == ADA
        assert entity.metadata["etag"] == answer["etag"]

    def test_changes_an_entity(self, people, mode):
        people.create_entity(ADA)

        people.upsert_entity({**KEYS, "Title": "Countess"}, mode=mode)

        kept = ADA if mode == UpdateMode.MERGE else KEYS
        assert people.get_entity("se", "ada") == {**kept, "Title": "Countess"}


class TestDelete:
    @pytest.fixture(autouse=True)
    def ada(self, people):
        self.etag = people.create_entity(ADA)["etag"]

    def test_takes_an_entity_as_it_was(self, people):
        people.delete_entity(people.get_entity("se", "ada"), match_condition=MatchConditions.IfNotModified)

        assert list(people.list_entities()) == []

    def test_refuses_to_delete_a_change(self, people):
        people.update_entity({**KEYS, "Age": 40})

        with pytest.raises(ResourceModifiedError) as refusal:
            people.delete_entity("se", "ada", etag=self.etag, match_condition=MatchConditions.IfNotModified)

        assert refusal.value.status_code == 412
        assert code_of(refusal) == "UpdateConditionNotSatisfied"
        assert people.get_entity("se", "ada")["Age"] == 40

    @pytest.mark.parametrize(
        "condition",
        [{}, {"etag": STALE, "match_condition": MatchConditions.IfNotModified}],
        ids=["any", "etag"],
    )
    def test_misses_an_entity_silently(self, people, condition):
        assert people.delete_entity("se", "nobody", **condition) is None


class TestReservedNames:
    def test_stores_an_entity_it_got_at_any_level(self, people):
        people.create_entity(ADA)
        result = TableEntity(people.get_entity("se", "ada", headers=accept("fullmetadata")))

        people.upsert_entity({**result, "RowKey": "copy"}, mode=UpdateMode.REPLACE)

        assert people.get_entity("se", "copy") == {**ADA, "RowKey": "copy"}


class TestLimits:
    @BOTH
    @LARGE_BODIES
    def test_takes_almost_1_mib(self, people):
        entity = {**KEYS, **{f"Text{number}": "ä" * 32768 for number in range(15)}}

        people.create_entity(entity)

        assert people.get_entity("se", "ada") == entity


@BOTH
class TestKeys:
    KEYS = [
        "",
        " ",
        "a''''b",
        "A'aaa\"_bbbb2",
        "RK'@*$!%",
        "100%",
        "%2F%00%zz",
        "a+b c",
        "+,$=& ",
        ":@;,()[]{}<>|^`~",
        "PartitionKey='x',RowKey='y')",
        "a=b&c=d",
        "$filter",
        "..",
        "ô ä ß",
        "你好",
        "اردو",
        "𝔘😀",
        "\ue000",
        "é" * 300,
        "k" * 1024,
    ]

    @pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key[:12]))
    def test_serves_keys_of_any_kind(self, people, key):
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
        assert list(people.list_entities()) == []


def test_stores_all_types_together(people):
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
        "clsid": GUID,
    }

    people.create_entity(TableEntity(entity))

    assert people.get_entity("se", "ada") == entity
    assert list(people.list_entities()) == [entity]
    bare = people.get_entity("se", "ada", headers={"Accept": "application/json;odata=nometadata"})
    assert bare == {
        **entity,
        "large": "933311100",
        "Birthday": "1973-10-04T00:00:00Z",
        "birthday": "1970-10-04T00:00:00Z",
        "binary": "YmluYXJ5",
        "clsid": str(GUID),
    }
