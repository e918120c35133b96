"""Advice on queries: the access path of each shape, and the pattern of keys that would serve it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from storage.domain.errors import StorageError
from storage.domain.filters.access_plan import AccessPath, Improvement, plan_access
from storage.domain.filters.ast import Comparison, Filter, Operator, conjuncts
from storage.domain.filters.parser import parse
from storage.domain.requests.cleaning import LEFT_OUT
from storage.domain.translation import mark as _
from storage.domain.values.edm import Edm
from storage.metrics.query_shapes import ShapeCount

_KEYS: Final = ("PartitionKey", "RowKey")
_RANGES: Final = (Operator.GT, Operator.GE, Operator.LT, Operator.LE)
_NUMBERS: Final = (Edm.INT32, Edm.INT64)


class Pattern(StrEnum):
    """Pattern of table design, by its section of the document."""

    POINT_READS = "point-reads"
    SECOND_COPY_WITHIN = "second-copy-within-a-partition"
    SECOND_COPY_ACROSS = "second-copy-across-partitions"
    LOG_TAIL = "log-tail"
    SUMMARY = "summary-entities"


@dataclass(frozen=True, slots=True)
class PatternText:
    """Texts of a pattern; its steps may name the ``table`` of the copies, and expressions of their keys."""

    title: str
    text: str
    steps: tuple[str, ...]
    writes_again: bool = False  # each write becomes two, and each entity takes its space twice


_MAKE_COPIES: Final = _("Make copies of the existing entities with the bulk edit.")
PATTERNS: Final[Mapping[Pattern, PatternText]] = {
    Pattern.POINT_READS: PatternText(
        _("Point reads"),
        _("The filter names entities one by one. Each can be read by its key, which costs least."),
        (_("Read each entity by its PartitionKey and RowKey, several of them in parallel."),),
    ),
    Pattern.SECOND_COPY_WITHIN: PatternText(
        _("Second copy in the partition"),
        _(
            "A second copy of each entity in the same partition, with a RowKey that begins with the value, makes this a"
            " range query."
        ),
        (
            _MAKE_COPIES,
            _("Write both copies in one change set, which Azure applies as a whole within a partition."),
            _("Query the partition with a range of RowKey. The RowKey of a copy is %(row_key)s."),
        ),
        writes_again=True,
    ),
    Pattern.SECOND_COPY_ACROSS: PatternText(
        _("Second copy in another table"),
        _(
            "A second copy of each entity in a table whose PartitionKey is the value makes this a query of one"
            " partition."
        ),
        (
            _MAKE_COPIES,
            _(
                "Write each change to both tables. Azure has no transactions over partitions, so repeat a second write"
                " that fails, for example from a queue."
            ),
            _("Send the query to the table %(table)s with this PartitionKey: %(partition_key)s."),
            _("Check from time to time that the copies are in step."),
        ),
        writes_again=True,
    ),
    Pattern.LOG_TAIL: PatternText(
        _("Log tail"),
        _(
            "With a RowKey that begins with inverted ticks, the newest entities come first in their partition."
        ),
        (
            _("Begin RowKey with DateTime.MaxValue.Ticks minus the ticks of the time, padded to 19 digits."),
            _(
                "Read the first entities of the partition, or a range of RowKey, instead of comparing a property."
            ),
        ),
    ),
    Pattern.SUMMARY: PatternText(
        _("Summary entities"),
        _(
            "The query reads the whole table. If the client computes a number or a list from it, keep the result in an"
            " entity of its own."
        ),
        (
            _(
                "Update the summary entity with each write, in the same change set if it is in the same partition."
            ),
            _("Read the summary entity by its key instead of all entities."),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class SecondCopy:
    """Keys of a second copy, as expressions of bulk edits; ``table`` is a new one, empty for the same."""

    partition_key: str
    row_key: str
    table: str = ""
    filter: str = (
        ""  # finds the originals: entities that have the properties, and no copies in the same table
    )


@dataclass(frozen=True, slots=True)
class Advice:
    """Pattern that would serve a query; ``properties`` are those that it looks for."""

    pattern: Pattern
    properties: tuple[str, ...] = ()
    copy: SecondCopy | None = None


@dataclass(frozen=True, slots=True)
class QueryUse:
    """Queries of one shape: how often, the entities that Azure reads for them, and what would serve them."""

    count: ShapeCount
    read: int | None  # entities that Azure reads at most for one query; None if it depends on the values
    indexed: bool  # here an index finds the entities
    advice: Advice | None

    @property
    def path(self) -> AccessPath:
        return self.count.path

    @property
    def returned(self) -> float:
        """Return the mean number of entities that a query returns, in all its pages."""
        return self.count.entities / self.count.requests if self.count.requests else 0.0

    @property
    def read_for_one(self) -> float | None:
        """Return how many entities Azure reads for one that it returns."""
        if self.read is None or not self.count.entities:
            return None
        return self.read * self.count.requests / self.count.entities

    @property
    def edit(self) -> dict[str, Any] | None:
        """Return the bulk edit that makes the second copies, in the form of the management API."""
        if self.advice is None or self.advice.copy is None:
            return None
        copy = self.advice.copy
        operation = {"op": "second-copy", "partition_key": copy.partition_key, "row_key": copy.row_key}
        edit = {"operations": [{**operation, "table": copy.table} if copy.table else operation]}
        return {"filter": copy.filter, **edit} if copy.filter else edit


def read_shape(shape: str) -> Filter | None:
    """Parse a shape, with a text in the place of each value; None without a filter, or if it was shortened."""
    if not shape or shape == LEFT_OUT:
        return None
    try:
        return parse(shape.replace(LEFT_OUT, "'x'"))
    except StorageError:
        return None


def advise(count: ShapeCount, types: dict[str, Edm], table: str) -> Advice | None:
    """Return the pattern for a shape of queries; None if its path is good, or no pattern is known to serve it.

    ``types`` are those of the table's properties.
    """
    if count.is_rest or count.path in (AccessPath.POINT, AccessPath.RANGE):
        return None
    root = read_shape(count.shape)
    if root is None:
        # all entities again and again
        return Advice(Pattern.SUMMARY) if not count.shape else None
    plan = plan_access(root)
    if plan.improvement is Improvement.READ_POINTS:
        return Advice(Pattern.POINT_READS)
    comparisons = [it for it in conjuncts(root) if isinstance(it, Comparison)]
    equal = _names(comparisons, (Operator.EQ,))
    ranges = _names(comparisons, _RANGES)
    within = "PartitionKey" in equal
    if sought := [name for name in equal if name not in (*_KEYS, "Timestamp")]:
        return _copy_by(sought, types, table, within=within)
    if times := [name for name in ranges if name == "Timestamp" or types.get(name) is Edm.DATETIME]:
        return Advice(Pattern.LOG_TAIL, tuple(times[:1]))
    if numbers := [name for name in ranges if name not in _KEYS]:
        return _copy_by(numbers[:1], types, table, within=within)
    if "RowKey" in equal and not within:
        copy = SecondCopy("RowKey", "PartitionKey", f"{table}ByRowKey"[:63])
        return Advice(Pattern.SECOND_COPY_ACROSS, ("RowKey",), copy)
    return None


def _names(comparisons: Sequence[Comparison], operators: Sequence[Operator]) -> list[str]:
    return list(dict.fromkeys(it.property for it in comparisons if it.operator in operators))


def _copy_by(names: Sequence[str], types: dict[str, Edm], table: str, *, within: bool) -> Advice:
    """Return the second copy whose keys begin with properties."""
    texts = [_as_text(name, types.get(name)) for name in names]
    having = " and ".join(f"isset({name})" for name in names)
    if within:
        row_key = f"concat('{names[0]}_', {_joined([*texts, 'RowKey'])})"
        copy = SecondCopy("PartitionKey", row_key, filter=f"{having} and {_is_no_copy(names[0])}")
        return Advice(Pattern.SECOND_COPY_WITHIN, tuple(names), copy)
    name = "".join(it[:1].upper() + it[1:] for it in names if it.isalnum() and it.isascii())
    copy = SecondCopy(
        texts[0] if len(texts) == 1 else f"concat({_joined(texts)})",
        f"concat({_joined(['PartitionKey', 'RowKey'])})",
        f"{table}By{name}"[:63],
        having,
    )
    return Advice(Pattern.SECOND_COPY_ACROSS, tuple(names), copy)


def _is_no_copy(name: str) -> str:
    """Return a condition for all entities but second copies whose RowKey begins with a property."""
    # the character after _ ends the range of the copies
    return f"not (RowKey ge '{name}_' and RowKey lt '{name}`')"


def exclude_copies(uses: Sequence[QueryUse]) -> list[QueryUse]:
    """Let the filter of each second copy leave out the copies that other advice makes in the same table."""
    within = dict.fromkeys(
        use.advice.properties[0]
        for use in uses
        if use.advice is not None and use.advice.pattern is Pattern.SECOND_COPY_WITHIN
    )
    return [_exclude(use, list(within)) for use in uses]


def _exclude(use: QueryUse, names: Sequence[str]) -> QueryUse:
    if use.advice is None or use.advice.copy is None:
        return use
    copy = use.advice.copy
    others = [condition for name in names if (condition := _is_no_copy(name)) not in copy.filter]
    changed = replace(copy, filter=" and ".join(filter(None, (copy.filter, *others))))
    return replace(use, advice=replace(use.advice, copy=changed))


def _joined(texts: Sequence[str]) -> str:
    return ", '_', ".join(texts)


def _as_text(name: str, type_: Edm | None) -> str:
    """Return an expression of a property whose texts are sorted as its values."""
    if type_ in (None, Edm.STRING):
        return name
    return f"pad({name}, 10)" if type_ in _NUMBERS else f"string({name})"
