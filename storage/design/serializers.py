"""Designs of tables as the management API shows them: the JSON of storage.design.dumps."""

from datetime import datetime
from typing import Annotated, Any

from storage.design.advice import Pattern
from storage.design.findings import Weight
from storage.domain.filters.access_plan import AccessPath
from storage.rest.answers import TypedSerializer

_EDIT = "A bulk edit in the form of this API; null without one."


class DesignFindingSerializer(TypedSerializer):
    kind: Annotated[str, "Such as `one-partition`: see the documentation of table design."]
    weight: Annotated[Weight, "A `problem` is slow or wrong on Azure; a `hint` may be meant so."]
    text: Annotated[str, "A sentence in English."]
    facts: Annotated[dict[str, Any], "Values that the sentence names."]
    entities: Annotated[int | None, "Number of entities, estimated from a sample in large tables."]
    examples: Annotated[list[str], "Keys, partitions or properties."]
    edit: Annotated[dict[str, Any] | None, f"What mends it. {_EDIT}"]


class LargePartitionSerializer(TypedSerializer):
    partition_key: str
    entities: int
    bytes: int


class SizeClassSerializer(TypedSerializer):
    least: Annotated[int, "Partitions of so many entities, and less than ten times as many."]
    partitions: int
    entities: int


class PartitionsSerializer(TypedSerializer):
    number: int
    entities: int
    bytes: Annotated[int, "Of keys and properties."]
    of_one_entity: Annotated[int, "Number of partitions of one entity."]
    examined: Annotated[int, "Number of partitions that were counted; the other numbers are estimates then."]
    is_exact: Annotated[bool, "Whether all partitions were counted."]
    largest: Annotated[list[LargePartitionSerializer], "Of those that were counted."]
    classes: list[SizeClassSerializer]


class BusiestPartitionSerializer(TypedSerializer):
    requests: Annotated[int, "Requests to the table in the last 24 hours."]
    partition_key: Annotated[str | None, "The partition with most of them; null without any."]
    share: Annotated[float, "Its share of the requests, from 0 to 1."]
    peak: Annotated[float, "Its requests a second in its busiest minute."]


class ExampleKeySerializer(TypedSerializer):
    partition_key: str
    row_key: str


class KindPropertySerializer(TypedSerializer):
    name: str
    share: Annotated[float, "Share of the entities of the kind that have it, from 0 to 1."]


class EntityKindSerializer(TypedSerializer):
    share: Annotated[float, "Share of the entities that are of the kind, from 0 to 1."]
    filter: Annotated[str, "A filter of the console that finds them; empty for the only kind."]
    example: ExampleKeySerializer
    properties: list[KindPropertySerializer]


class ShapeClientSerializer(TypedSerializer):
    agent: str
    requests: int


class QueryUseSerializer(TypedSerializer):
    shape: Annotated[str, "A filter with … for each value; empty without a filter."]
    access_path: AccessPath
    requests: Annotated[int, "Number of queries in the last 7 days."]
    entities: Annotated[int, "Number of entities that they returned."]
    clients: list[ShapeClientSerializer]
    read: Annotated[int | None, "Entities that Azure reads at most for one query; null if that is not known."]
    read_for_one: Annotated[float | None, "Entities that Azure reads for each that it returns."]
    has_index: Annotated[bool, "Whether an index of this server finds the entities."]
    pattern: Annotated[Pattern | None, "Pattern of table design that would serve it."]
    edit: Annotated[dict[str, Any] | None, f"What makes the second copies. {_EDIT}"]


class DesignSerializer(TypedSerializer):
    table: str
    examined_at: Annotated[datetime, "At most a minute ago."]
    examined: Annotated[int, "Number of entities whose keys and properties were looked at."]
    findings: Annotated[list[DesignFindingSerializer], "Problems first."]
    partitions: PartitionsSerializer
    traffic: BusiestPartitionSerializer
    writes_a_day: Annotated[float, "Requests that write, by the last 7 days."]
    kinds: list[EntityKindSerializer]
    queries: Annotated[list[QueryUseSerializer], "The most frequent first."]


class TableProblemsSerializer(TypedSerializer):
    table: str
    problems: list[DesignFindingSerializer]


class AccountDesignSerializer(TypedSerializer):
    tables: Annotated[list[TableProblemsSerializer], "The largest tables, also those without problems."]
    others: Annotated[int, "Number of tables that were not examined."]
