"""Findings about the design of a table: each with its reason, its facts, and what mends it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final

from storage.design.advice import QueryUse
from storage.design.keys import KeyFinding, KeyName, KeyPattern
from storage.design.kinds import EntityKind, MixedProperty
from storage.domain.requests.targets import PARTITION_TARGET
from storage.domain.translation import mark as _
from storage.domain.values.edm import Edm
from storage.sql.design import Partitions

_FEW: Final = 1_000  # entities below which partitions do not matter
_MANY: Final = 10_000  # entities from which one partition is a problem, even if its requests are few
_SKEWED: Final = 3  # partitions
_SKEWED_SHARE: Final = 0.5  # share of the entities in these partitions
_HOT_SHARE: Final = 0.5  # share of the requests to one partition
_FEW_REQUESTS: Final = 1_000
_SINGLE_SHARE: Final = 0.9  # partitions of one entity
_READ_FOR_ONE: Final = 100  # entities that are read for one that is returned
_FEW_QUERIES: Final = 10  # below which a query may be a person's, who looks for something once
_LONGEST: Final = 120  # characters of a key or a filter in a sentence
_BUSY: Final = PARTITION_TARGET / 10  # requests a second from which a hot partition is more than a hint


class Weight(StrEnum):
    """Weight of a finding."""

    PROBLEM = "problem"  # slow or wrong on Azure
    HINT = "hint"  # may be meant so
    GOOD = "good"


@dataclass(frozen=True, slots=True)
class Form:
    """Texts of a kind of finding; ``section`` is that of the document."""

    value: str
    weight: Weight
    title: str
    text: str
    section: str


class DesignKind(Enum):
    """Kinds of findings."""

    ONE_PARTITION = Form(
        "one-partition",
        Weight.PROBLEM,
        _("One partition"),
        _(
            "All %(entities)s entities are in one partition: every request meets the same server, and Azure's target"
            " for one is %(target)s entities a second."
        ),
        "partitions",
    )
    SINGLE_ENTITIES = Form(
        "single-entities",
        Weight.HINT,
        _("One entity per partition"),
        _(
            "%(share)s %% of the partitions have one entity: it is found by its keys only, without transactions and"
            " ranges over several."
        ),
        "partitions",
    )
    SKEWED = Form(
        "skewed-partitions",
        Weight.HINT,
        _("Unequal partitions"),
        _(
            "%(number)s of %(partitions)s partitions have %(share)s %% of the entities, the largest is %(partition)s."
        ),
        "partitions",
    )
    HOT_PARTITION = Form(
        "hot-partition",
        Weight.PROBLEM,
        _("Hot partition"),
        _(
            "The partition %(partition)s gets %(share)s %% of the requests of the last day, up to %(peak)s a second;"
            " Azure's target for one partition is %(target)s entities a second."
        ),
        "hot-partitions",
    )
    UNPADDED = Form(
        KeyPattern.UNPADDED,
        Weight.PROBLEM,
        _("Numbers without leading zeroes"),
        _("%(key)s has numbers of different lengths, so %(first)s comes after %(second)s."),
        "numbers-in-keys",
    )
    DATE = Form(
        KeyPattern.DATE,
        Weight.PROBLEM,
        _("Dates that do not sort"),
        _("%(key)s has dates such as %(first)s, whose order as texts is not that of time."),
        "dates-in-keys",
    )
    INVERTED_TICKS = Form(
        KeyPattern.INVERTED_TICKS,
        Weight.GOOD,
        _("Newest first"),
        _("%(key)s has inverted ticks, so the newest entities come first: %(first)s is %(moment)s."),
        "log-tail",
    )
    TICKS = Form(
        KeyPattern.TICKS,
        Weight.HINT,
        _("Ticks"),
        _("%(key)s has ticks, so the oldest entities come first: %(first)s is %(moment)s."),
        "log-tail",
    )
    MIXED_CASE = Form(
        KeyPattern.MIXED_CASE,
        Weight.PROBLEM,
        _("Keys that differ in case"),
        _("%(key)s has values that differ only in the case of letters, such as %(first)s and %(second)s."),
        "case-in-keys",
    )
    GUID = Form(
        KeyPattern.GUID,
        Weight.HINT,
        _("GUIDs as PartitionKey"),
        _(
            "PartitionKey has GUIDs such as %(first)s: entities that belong together are in different partitions."
        ),
        "partitions",
    )
    LONG = Form(
        KeyPattern.LONG,
        Weight.HINT,
        _("Keys near their limit"),
        _("%(key)s has values of %(length)s characters and more; the limit is 1,024."),
        "keys",
    )
    DIFFICULT = Form(
        KeyPattern.DIFFICULT,
        Weight.HINT,
        _("Difficult characters in keys"),
        _("%(key)s has characters that addresses encode or filters double, such as in %(first)s."),
        "keys",
    )
    SEVERAL_KINDS = Form(
        "several-kinds",
        Weight.HINT,
        _("Several kinds of entities"),
        _(
            "The table has %(number)s kinds of entities. Keys that begin with the kind find one kind by a range."
        ),
        "several-kinds",
    )
    MIXED_TYPES = Form(
        "mixed-types",
        Weight.PROBLEM,
        _("Property with several types"),
        _(
            "%(property)s has values of several types: %(types)s. A filter finds only values of the type that it names."
        ),
        "types",
    )
    MIXED_NUMBERS = Form(
        "mixed-numbers",
        Weight.HINT,
        _("Numbers of several types"),
        _(
            "%(property)s has numbers of several types: %(types)s. Filters compare them with each other, but"
            " programs get one type or the other."
        ),
        "types",
    )
    COSTLY_QUERY = Form(
        "costly-query",
        Weight.PROBLEM,
        _("Query that reads much more than it returns"),
        _(
            "The query %(query)s was sent about %(requests)s times. On Azure it reads up to %(read)s entities each"
            " time, %(ratio)s for each that it returns."
        ),
        "queries-first",
    )

    def __str__(self) -> str:
        return self.value.value


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding: ``edit`` is a bulk edit that mends it, in the form of the management API."""

    kind: DesignKind
    facts: Mapping[str, object]
    entities: int | None = None
    edit: Mapping[str, Any] | None = None
    query: QueryUse | None = None
    examples: Sequence[str] = ()
    given_weight: Weight | None = None  # another one than that of its kind

    @property
    def weight(self) -> Weight:
        return self.given_weight or self.kind.value.weight

    @property
    def text(self) -> str:
        """Return the sentence in English."""
        return self.kind.value.text % self.write_facts(lambda number: f"{number:,}")

    def write_facts(self, write_number: Callable[[int], str]) -> dict[str, object]:
        """Return the facts as the sentence names them, with written numbers and shortened texts."""
        return {
            name: write_number(fact) if isinstance(fact, int) else _shorten(str(fact))
            for name, fact in self.facts.items()
        }


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@dataclass(frozen=True, slots=True)
class PartitionTraffic:
    """Requests of the last day by partition."""

    requests: int
    partition: str = ""  # the busiest
    share: float = 0.0
    peak: float = 0.0  # requests a second in its busiest minute


def find_about_partitions(
    partitions: Partitions, traffic: PartitionTraffic, candidate: str
) -> Iterator[Finding]:
    """Yield findings about partitions; ``candidate`` is an expression of a PartitionKey for a table with only one."""
    if partitions.entities >= _FEW:
        yield from _find_about_sizes(partitions, traffic, candidate)
    is_hot = traffic.share >= _HOT_SHARE and partitions.number > 1
    if traffic.requests >= _FEW_REQUESTS and (is_hot or traffic.peak >= PARTITION_TARGET):
        facts = {
            "partition": traffic.partition,
            "share": _percent(traffic.share),
            "peak": round(traffic.peak),
            "target": PARTITION_TARGET,
        }
        given_weight = Weight.HINT if traffic.peak < _BUSY else None
        yield Finding(
            DesignKind.HOT_PARTITION, facts, examples=(traffic.partition,), given_weight=given_weight
        )


def _find_about_sizes(partitions: Partitions, traffic: PartitionTraffic, candidate: str) -> Iterator[Finding]:
    if partitions.number == 1:
        facts: dict[str, object] = {
            "entities": partitions.entities,
            "target": PARTITION_TARGET,
        }
        edit = {"operations": [{"op": "key", "partition_key": candidate}]} if candidate else None
        is_small = partitions.entities < _MANY and traffic.peak < _BUSY
        given_weight = Weight.HINT if is_small else None
        yield Finding(DesignKind.ONE_PARTITION, facts, partitions.entities, edit, given_weight=given_weight)
    elif partitions.single >= _SINGLE_SHARE * partitions.number:
        facts = {"share": _percent(partitions.single / partitions.number)}
        yield Finding(DesignKind.SINGLE_ENTITIES, facts, partitions.single)
    elif partitions.number > 10 * _SKEWED and partitions.largest:
        first = partitions.largest[:_SKEWED]
        entities = sum(it.entities for it in first)
        if entities >= _SKEWED_SHARE * partitions.entities:
            facts = {
                "number": len(first),
                "partitions": partitions.number,
                "share": _percent(entities / partitions.entities),
                "partition": first[0].key,
            }
            yield Finding(DesignKind.SKEWED, facts, entities, examples=tuple(it.key for it in first))


def _percent(share: float) -> int:
    return min(99, round(100 * share)) if share < 1 else 100


_KINDS: Final = {kind.value.value: kind for kind in DesignKind}


def find_about_keys(
    patterns: Sequence[KeyFinding], scale: float, longest: Mapping[KeyName, int]
) -> Iterator[Finding]:
    """Yield findings about keys; ``scale`` is the number of all entities for one examined.

    ``longest`` is the length of the longest key in characters.
    """
    for one in patterns:
        if one.pattern is KeyPattern.GUID and one.key is KeyName.ROW:
            continue  # a good RowKey, if entities are read by it
        facts: dict[str, object] = {
            "key": one.key.value,
            "first": one.examples[0],
            "second": "".join(one.examples[1:2]),
        }
        if one.moments:
            facts["moment"] = f"{one.moments[0]:%Y-%m-%d %H:%M:%S} UTC"
        if one.pattern is KeyPattern.LONG:
            facts["length"] = min(len(it.encode("utf-16-le")) // 2 for it in one.examples)
        kind = _KINDS[one.pattern]
        is_order_of_partitions = one.key is KeyName.PARTITION and kind in (
            DesignKind.UNPADDED,
            DesignKind.DATE,
        )
        yield Finding(
            kind,
            facts,
            round(one.entities * scale),
            _mend_key(one, longest),
            examples=one.examples,
            # ranges of partitions are seldom asked for
            given_weight=Weight.HINT if is_order_of_partitions else None,
        )


def _mend_key(pattern: KeyFinding, longest: Mapping[KeyName, int]) -> dict[str, Any] | None:
    key, member = pattern.key.value, "partition_key" if pattern.key is KeyName.PARTITION else "row_key"
    # the longest number may not be among those examined
    width = max(pattern.width, longest.get(pattern.key, 0) - len(pattern.prefix))
    match pattern.pattern:
        case KeyPattern.UNPADDED if pattern.prefix:
            prefix = pattern.prefix.replace("'", "''")
            expression = f"concat('{prefix}', pad(substring({key}, {len(pattern.prefix)}), {width}))"
        case KeyPattern.UNPADDED if all(it.isdecimal() for it in pattern.examples):
            expression = f"pad({key}, {width})"
        case KeyPattern.DATE:
            expression = f"substring(string(datetime({key}, '{pattern.format}')), 0, 10)"
        case KeyPattern.MIXED_CASE if pattern.key is KeyName.PARTITION:  # RowKeys would be the same
            expression = f"lower({key})"
        case _:
            return None
    return {"operations": [{"op": "key", member: expression}]}


def find_about_kinds(
    kinds: Sequence[EntityKind], mixed: Sequence[MixedProperty], scale: float
) -> Iterator[Finding]:
    """Yield findings about kinds of entities and types of properties."""
    if len(kinds) > 1:
        yield Finding(DesignKind.SEVERAL_KINDS, {"number": len(kinds)})
    for one in mixed:
        types = ", ".join(f"{kind.short_name} ({round(number * scale):,})" for kind, number in one.types)
        most = one.types[0][0]
        # JavaScript sends numbers without a fraction as Int32; filters compare the two types with each other
        is_fraction = {kind for kind, _ in one.types} == {Edm.INT32, Edm.DOUBLE}
        target = Edm.DOUBLE if is_fraction else most
        others = sum(number for kind, number in one.types if kind is not target)
        edit = {"operations": [{"op": "convert", "property": one.name, "type": target.short_name}]}
        facts = {"property": one.name, "types": types}
        kind = DesignKind.MIXED_NUMBERS if is_fraction else DesignKind.MIXED_TYPES
        yield Finding(kind, facts, round(others * scale), edit, examples=(one.name,))


def find_about_queries(uses: Sequence[QueryUse]) -> Iterator[Finding]:
    """Yield the queries that read many entities for each that they return."""
    for use in uses:
        if use.read is None or use.read < _FEW or use.count.is_rest or not use.count.requests:
            continue
        ratio = use.read_for_one or float(use.read)
        if ratio < _READ_FOR_ONE:
            continue
        facts = {
            "query": use.count.shape,
            "requests": use.count.requests,
            "read": use.read,
            "ratio": round(ratio),
        }
        is_seldom = use.count.requests < _FEW_QUERIES
        given_weight = Weight.HINT if is_seldom else None
        yield Finding(DesignKind.COSTLY_QUERY, facts, edit=use.edit, query=use, given_weight=given_weight)
