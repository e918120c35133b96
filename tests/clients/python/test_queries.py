"""Lists and queries: parameters of every type, filters, projection, pages and their order."""

import math
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty

from .conftest import code_of

GUID = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
OTHER_GUID = UUID("d8da6455-213e-42d9-9b79-3f9149a57833")
NOON = datetime(2026, 2, 3, 12, 0, 0, 123456, tzinfo=UTC)
LOW = {
    "PartitionKey": "se",
    "RowKey": "low",
    "Text": "apple",
    "Flag": False,
    "Count": -5,
    "Big": EntityProperty(2**33, EdmType.INT64),
    "Ratio": 0.5,
    "Moment": NOON,
    "Id": GUID,
    "Data": b"\x00\x01",
}
HIGH = {
    "PartitionKey": "se",
    "RowKey": "high",
    "Text": "zebra",
    "Flag": True,
    "Count": 40,
    "Big": EntityProperty(2**60, EdmType.INT64),
    "Ratio": 1e10,
    "Moment": NOON + timedelta(microseconds=1),
    "Id": OTHER_GUID,
    "Data": b"\x00\x02",
}
BARE = {"PartitionKey": "zz", "RowKey": "bare"}
PARAMETERS = {
    "Text": ("apple", "zebra"),
    "Flag": (False, True),
    "Count": (-5, 40),
    "Big": (2**33, 2**60),
    "Ratio": (0.5, 1e10),
    "Moment": (NOON, NOON + timedelta(microseconds=1)),
    "Id": (GUID, OTHER_GUID),
    "Data": (b"\x00\x01", b"\x00\x02"),
}


@pytest.fixture
def zoo(people):
    """A table of three entities: two with a low and a high value of every type, and one without."""
    people.submit_transaction([("create", LOW), ("create", HIGH)])
    people.create_entity(BARE)
    return people


def rows(entities):
    return [entity["RowKey"] for entity in entities]


class TestParameters:
    COMPARISONS: tuple[tuple[str, list[str], list[str]], ...] = (
        ("eq", ["low"], ["high"]),
        ("ne", ["high"], ["low"]),
        ("lt", [], ["low"]),
        ("le", ["low"], ["high", "low"]),
        ("gt", ["high"], []),
        ("ge", ["high", "low"], ["high"]),
    )

    @pytest.mark.parametrize("name", PARAMETERS)
    def test_compare_values_of_every_type(self, zoo, name):
        low, high = PARAMETERS[name]
        for operator, at_low, at_high in self.COMPARISONS:
            query = f"{name} {operator} @value"
            assert rows(zoo.query_entities(query, parameters={"value": low})) == at_low, operator
            assert rows(zoo.query_entities(query, parameters={"value": high})) == at_high, operator

    def test_are_several(self, zoo):
        found = zoo.query_entities(
            "Flag eq @flag and RowKey eq @row and Moment ge @moment",
            parameters={"flag": False, "row": "low", "moment": NOON},
        )

        assert list(found) == [LOW]

    @pytest.mark.parametrize("infinity", ["INF", "-INF", "NaN"])
    def test_compares_special_doubles_given_as_literals(self, zoo, infinity):
        value = {"INF": math.inf, "-INF": -math.inf, "NaN": math.nan}[infinity]
        zoo.create_entity({"PartitionKey": "se", "RowKey": "special", "Ratio": value})

        expected = [] if infinity == "NaN" else ["special"]
        assert rows(zoo.query_entities(f"Ratio eq {infinity}")) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "o'hara",
            "''",
            "100%",
            "a+b",
            "a&b=c",
            "#?/\\",
            "é",
            "你好",
            "😀",
            "@value",
            "x' or 'a' eq 'a",
            "\ue000",
            "\t\n",
        ],
    )
    def test_finds_strings_of_any_kind(self, people, text):
        people.create_entity({"PartitionKey": "se", "RowKey": "ada", "Text": text})
        people.create_entity({"PartitionKey": "se", "RowKey": "other", "Text": text + "x"})

        assert rows(people.query_entities("Text eq @text", parameters={"text": text})) == ["ada"]

    def test_are_no_way_to_inject(self, people):
        people.create_entity({"PartitionKey": "foo", "RowKey": "bar1", "IsAdmin": "admin"})
        people.create_entity({"PartitionKey": "foo", "RowKey": "bar2", "IsAdmin": ""})
        admins = "PartitionKey eq @first and IsAdmin eq 'admin'"
        injection = "foo' or RowKey eq 'bar2"

        assert rows(people.query_entities(admins, parameters={"first": "foo"})) == ["bar1"]
        assert rows(people.query_entities(admins.replace("@first", f"'{injection}'"))) == ["bar1", "bar2"]
        assert rows(people.query_entities(admins, parameters={"first": injection})) == []

    def test_finds_special_characters_in_keys(self, people):
        first = {"PartitionKey": ":@", "RowKey": "+,$", "Chars": "?'/!_^#"}
        second = {"PartitionKey": ":@", "RowKey": "=& ", "Chars": '?"\\{}<>%'}
        people.create_entity(first)
        people.create_entity(second)
        query = "PartitionKey eq @key and RowKey eq @row and Chars eq @chars"

        assert len(list(people.query_entities("PartitionKey eq ':@'"))) == 2
        for entity in (first, second):
            parameters = dict(zip(("key", "row", "chars"), entity.values(), strict=True))
            assert list(people.query_entities(query, parameters=parameters)) == [entity]
        literal = "PartitionKey eq ':@' and RowKey eq '+,$' and Chars eq '?''/!_^#'"
        assert list(people.query_entities(literal)) == [first]

    def test_finds_numbers_of_all_numeric_types(self, people):
        values = {"int32": 64, "int64": EntityProperty(64, EdmType.INT64), "double": 64.0, "text": "64"}
        for row, value in values.items():
            people.create_entity({"PartitionKey": "se", "RowKey": row, "Value": value})

        assert rows(people.query_entities("Value eq @value", parameters={"value": 64})) == [
            "double",
            "int32",
            "int64",
        ]
        assert rows(people.query_entities("Value eq 64L")) == ["int64"]

    def test_finds_by_timestamp(self, zoo):
        timestamp = zoo.get_entity("se", "low").metadata["timestamp"]

        before = zoo.query_entities("Timestamp lt @then", parameters={"then": timestamp - timedelta(hours=1)})
        after = zoo.query_entities("Timestamp gt @then", parameters={"then": timestamp - timedelta(hours=1)})

        assert rows(before) == []
        assert len(rows(after)) == 3


class TestFilters:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("PartitionKey eq 'se'", ["high", "low"]),
            ("PartitionKey eq 'se' and RowKey eq 'low'", ["low"]),
            ("PartitionKey eq 'se' and RowKey gt 'high' and RowKey lt 'm'", ["low"]),
            ("PartitionKey gt 'se'", ["bare"]),
            ("RowKey eq 'low' or RowKey eq 'bare'", ["low", "bare"]),
            ("RowKey eq 'low' or RowKey eq 'bare' and PartitionKey eq 'none'", ["low"]),
            ("(RowKey eq 'low' or RowKey eq 'bare') and PartitionKey eq 'zz'", ["bare"]),
            ("not (Flag eq true)", ["low", "bare"]),
            ("not Flag", ["low", "bare"]),
            ("Flag", ["high"]),
            ("'low' eq RowKey", ["low"]),
            ("Text ge 'a' and Text lt 'b'", ["low"]),
            ("Missing ne ''", []),
            ("not (Missing ge '')", ["high", "low", "bare"]),
            ("Count eq 40.0", ["high"]),
            ("Ratio gt 1", ["high"]),
            ("Id eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", ["low"]),
            ("Data eq binary'0001'", ["low"]),
            ("Moment ge datetime'2026-02-03T12:00:00.1234561Z'", ["high"]),
            ("Text eq 5", []),
            ("", ["high", "low", "bare"]),
        ],
    )
    def test_finds(self, zoo, query, expected):
        assert rows(zoo.query_entities(query)) == expected

    @pytest.mark.parametrize("count", [16, 100])
    def test_takes_many_comparisons(self, zoo, count):
        query = " or ".join(
            ["RowKey eq 'low'", *(f"RowKey eq 'none{number}'" for number in range(count - 1))]
        )

        assert rows(zoo.query_entities(query)) == ["low"]

    @pytest.mark.parametrize(
        "query", ["aaa bbb ccc", "Text eq", "(Text eq 'a'", "Text eq 'a", "Text === 'a'", "1"]
    )
    def test_refuses_what_is_no_filter(self, zoo, query):
        with pytest.raises(HttpResponseError) as refusal:
            list(zoo.query_entities(query))

        assert refusal.value.status_code == 400
        assert code_of(refusal) == "InvalidInput"

    def test_says_where_the_syntax_is_wrong(self, zoo):
        with pytest.raises(HttpResponseError, match="Syntax error at position 7 in 'aaa bbb ccc'"):
            list(zoo.query_entities("aaa bbb ccc"))

    def test_refuses_functions(self, zoo):
        with pytest.raises(HttpResponseError) as refusal:
            list(zoo.query_entities("startswith(Text,'a')"))

        assert refusal.value.status_code == 501
        assert code_of(refusal) == "NotImplemented"


class TestProjection:
    def test_lists_selected_properties(self, zoo):
        found = list(zoo.list_entities(select=["RowKey", "Text"]))

        assert found == [
            {"RowKey": "high", "Text": "zebra"},
            {"RowKey": "low", "Text": "apple"},
            {"RowKey": "bare", "Text": None},
        ]
        assert all(entity.metadata["etag"] for entity in found)

    def test_queries_selected_properties_of_every_type(self, zoo):
        names = [*PARAMETERS, "RowKey"]

        found = list(zoo.query_entities("RowKey eq 'low'", select=names))

        assert found == [{name: LOW[name] for name in names}]

    def test_filters_by_a_property_it_does_not_select(self, zoo):
        assert list(zoo.query_entities("Count gt 0", select="Text")) == [{"Text": "zebra"}]

    def test_pages_through_selected_properties(self, zoo):
        pages = zoo.list_entities(select="Text", results_per_page=1).by_page()

        assert [list(page) for page in pages] == [[{"Text": "zebra"}], [{"Text": "apple"}], [{"Text": None}]]


class TestMetadata:
    @pytest.mark.parametrize("level", ["nometadata", "minimalmetadata", "fullmetadata"])
    def test_gives_each_entity_its_etag_and_timestamp(self, people, level):
        etags = [people.create_entity({"PartitionKey": "se", "RowKey": row})["etag"] for row in "abc"]

        found = list(people.list_entities(headers={"Accept": f"application/json;odata={level}"}))

        assert [entity.metadata["etag"] for entity in found] == etags
        assert all(entity.metadata["timestamp"].tzinfo for entity in found)

    def test_gives_links_at_the_full_level(self, people, server):
        people.create_entity({"PartitionKey": "s'e", "RowKey": "a b"})

        (found,) = people.list_entities(headers={"Accept": "application/json;odata=fullmetadata"})

        path = f"{people.table_name}(PartitionKey='s''e',RowKey='a%20b')"
        assert found.metadata["editLink"] == path
        assert found.metadata["id"] == f"{server.endpoint}/{path}"
        assert found.metadata["type"] == f"{server.account}.{people.table_name}"


class TestOrder:
    def test_lists_by_partition_then_row_by_code_unit(self, people):
        keys = ["", "!", "10", "9", "A", "Z", "_", "a", "aa", "b", "z", "é", "ö", "你"]
        for partition in reversed(keys):
            people.create_entity({"PartitionKey": partition, "RowKey": "r"})
            people.create_entity({"PartitionKey": partition, "RowKey": ""})

        found = [(entity["PartitionKey"], entity["RowKey"]) for entity in people.list_entities()]

        assert found == [(partition, row) for partition in keys for row in ("", "r")]


class TestPages:
    @pytest.fixture
    def crowd(self, people):
        """A table of seven entities in three partitions, with an empty row key at the start of each."""
        for partition, row in self.KEYS:
            people.create_entity({"PartitionKey": partition, "RowKey": row})
        return people

    KEYS = [("a", ""), ("a", "1"), ("a", "2"), ("b'%", ""), ("b'%", "é "), ("ü", ""), ("ü", "+")]

    def keys(self, page):
        return [(entity["PartitionKey"], entity["RowKey"]) for entity in page]

    @pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8, 1000])
    def test_hold_as_many_as_asked_for(self, crowd, size):
        pages = [self.keys(page) for page in crowd.list_entities(results_per_page=size).by_page()]

        assert pages == [self.KEYS[start : start + size] for start in range(0, len(self.KEYS), size)]

    def test_continue_from_a_token(self, crowd):
        found = []
        token = None
        for _ in range(3):
            pages = crowd.list_entities(results_per_page=3).by_page(continuation_token=token)
            found += self.keys(next(pages))
            token = pages.continuation_token

        assert found == self.KEYS
        assert token is None

    def test_continue_a_query(self, crowd):
        begun = crowd.query_entities("RowKey ne ''", results_per_page=2).by_page()
        found = self.keys(next(begun))
        rest = crowd.query_entities("RowKey ne ''", results_per_page=2).by_page(begun.continuation_token)

        found += [key for page in rest for key in self.keys(page)]

        assert found == [key for key in self.KEYS if key[1]]

    def test_continue_after_the_next_entity_is_gone(self, crowd):
        begun = crowd.list_entities(results_per_page=2).by_page()
        next(begun)
        crowd.delete_entity("a", "2")

        rest = crowd.list_entities().by_page(begun.continuation_token)

        assert [key for page in rest for key in self.keys(page)] == self.KEYS[3:]

    def test_are_nothing_in_an_empty_table(self, people):
        assert list(people.list_entities()) == []
        assert [list(page) for page in people.list_entities().by_page()] == [[]]

    def test_hold_1000_at_most(self, people):
        insert_many(people, 1050)

        pages = [rows(page) for page in people.list_entities().by_page()]

        assert [len(page) for page in pages] == [1000, 50]
        assert [row for page in pages for row in page] == [f"{number:04}" for number in range(1050)]

    def test_of_more_than_1000_are_refused(self, people):
        with pytest.raises(HttpResponseError) as refusal:
            list(people.list_entities(results_per_page=1001))

        assert refusal.value.status_code == 400
        assert code_of(refusal) == "InvalidInput"

    def test_of_less_than_one_are_refused(self, people):
        with pytest.raises(HttpResponseError) as refusal:
            list(people.list_entities(results_per_page=-1))

        assert code_of(refusal) == "InvalidInput"

    @pytest.mark.parametrize(
        "token", [{"PartitionKey": "nonsense", "RowKey": "é"}, {"PartitionKey": "1!4!####"}]
    )
    def test_from_a_bad_token_are_refused(self, people, token):
        with pytest.raises(HttpResponseError) as refusal:
            next(people.list_entities().by_page(token))

        assert refusal.value.status_code == 400
        assert code_of(refusal) == "InvalidInput"


def insert_many(table, count):
    for start in range(0, count, 100):
        numbers = range(start, min(start + 100, count))
        table.submit_transaction(
            [("create", {"PartitionKey": "se", "RowKey": f"{number:04}"}) for number in numbers]
        )
