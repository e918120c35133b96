"""Columns of the table list, from whose declarations the console's list is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from django.db.models import Count, F, Model, OuterRef, Subquery
from django.db.models.expressions import Combinable, Expression
from django.db.models.functions import Coalesce
from django.utils import timezone

from storage.domain.translation import mark as _
from storage.domain.values.kinds import AccountKind
from storage.metrics import table_use
from storage.metrics.last_day import Hours
from storage.models import StoredAccessPolicy, Table
from storage.sql import background


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a table; estimated unless ``is_exact``. ``bytes`` includes indexes; ``partitions`` may be unknown."""

    entities: int
    is_exact: bool
    bytes: int
    partitions: int | None


@dataclass(frozen=True, slots=True)
class TableRow:
    """Table with the values of its list columns."""

    table: Table
    size: Size | None = None  # None: not measured yet
    hours: Hours = ()  # requests; empty if there were none


class Cell(StrEnum):
    """Rendering of a column's values."""

    NAME = "name"  # the head of a row, with tags and description: of the first column
    ENTITIES = "entities"  # a count that can be made exact
    COUNT = "count"
    BYTES = "bytes"
    HOURS = "hours"
    MOMENT = "moment"
    POLICIES = "policies"


class Importance(StrEnum):
    """Priority of a column on narrow screens."""

    HIGH = "high"
    MINOR = "minor"  # phones leave it out
    OPTIONAL = "optional"  # all narrow pages leave it out


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of the list of tables."""

    name: str  # in addresses
    label: str
    value: str  # its path, from a TableRow
    cell: Cell
    sort_key: Callable[[], Expression | F] | None = (
        None  # by which PostgreSQL sorts; None: it is not sorted by
    )
    importance: Importance = Importance.HIGH
    annotations: Mapping[str, Combinable] = field(default_factory=dict)
    only_storage: bool = False  # accounts of other kinds do not have it

    @property
    def is_sortable(self) -> bool:
        return self.sort_key is not None

    @property
    def is_measured(self) -> bool:
        """Return whether the column's values come with the sizes, which load after the page."""
        return self.value.startswith("size.")

    def read(self, row: TableRow) -> Any:
        """Return the column's value; None if it is not measured yet."""
        return None if self.is_measured and row.size is None else attrgetter(self.value)(row)


def _count_of(rows: type[Model]) -> Coalesce:
    """Return a query expression that counts a model's rows per table."""
    own = rows._default_manager.filter(table=OuterRef("pk")).order_by().values("table")
    return Coalesce(Subquery(own.annotate(number=Count("pk")).values("number")), 0)


# large accounts are sorted by PostgreSQL's statistics, which lag behind by a minute
_ALL: Final = (
    Column("name", _("Name"), "table.name", Cell.NAME, lambda: F("folded_name")),
    Column("entities", _("Entities"), "size.entities", Cell.ENTITIES, lambda: background.ESTIMATED_ROWS),
    Column("partitions", _("Partitions"), "size.partitions", Cell.COUNT, importance=Importance.OPTIONAL),
    Column("size", _("Size"), "size.bytes", Cell.BYTES, lambda: background.ESTIMATED_PAGES),
    Column(
        "requests",
        _("Requests in 24 h"),
        "hours",
        Cell.HOURS,
        lambda: table_use.requests_of_table(timezone.now()),
    ),
    Column("written", _("Last write"), "table.written_at", Cell.MOMENT, lambda: F("written_at")),
    Column(
        "policies",
        _("Policies"),
        "table.policy_count",
        Cell.POLICIES,
        importance=Importance.MINOR,
        annotations={"policy_count": _count_of(StoredAccessPolicy)},
        only_storage=True,
    ),
    Column(
        "created",
        _("Created"),
        "table.created_at",
        Cell.MOMENT,
        lambda: F("created_at"),
        Importance.OPTIONAL,
    ),
)
COLUMNS: Final[Mapping[str, Column]] = {column.name: column for column in _ALL}
SORTABLE: Final[Mapping[str, Column]] = {column.name: column for column in _ALL if column.is_sortable}
NAME: Final = COLUMNS["name"]
# annotations of each listed table
ANNOTATIONS: Final = {name: value for column in _ALL for name, value in column.annotations.items()}


def columns_of(kind: str) -> list[Column]:
    """Return the columns for an account kind."""
    return [column for column in _ALL if kind == AccountKind.STORAGE or not column.only_storage]
