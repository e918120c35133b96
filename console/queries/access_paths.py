"""How a filter reaches its entities, in words: why no less is read, what Azure would do and what is done here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from storage.domain.filters.query import Access, AccessPath, Improvement, Reason
from storage.operations.estimates import Estimate, Means


@dataclass(frozen=True, slots=True)
class Look:
    label: Promise
    kind: str  # of a badge
    icon: str
    on_azure: Promise


LOOKS: Final[Mapping[AccessPath, Look]] = {
    AccessPath.POINT: Look(
        gettext_lazy("Point"), "ok", "target", gettext_lazy("One entity is read: no query costs less.")
    ),
    AccessPath.RANGE: Look(
        gettext_lazy("Range"), "accent", "move-horizontal", gettext_lazy("A part of one partition is read.")
    ),
    AccessPath.PARTITION_SCAN: Look(
        gettext_lazy("Partition scan"), "warn", "rows-3", gettext_lazy("One whole partition is read.")
    ),
    AccessPath.PARTITION_RANGE: Look(
        gettext_lazy("Partition range"),
        "warn",
        "columns-3",
        gettext_lazy("Several partitions are read; expect continuation tokens where one ends."),
    ),
    AccessPath.TABLE_SCAN: Look(
        gettext_lazy("Table scan"),
        "danger",
        "table-2",
        gettext_lazy(
            "The whole table is read; expect pages with few or no entities and a continuation token."
        ),
    ),
}

REASONS: Final[Mapping[Reason, Promise]] = {
    Reason.BOTH_KEYS: gettext_lazy("PartitionKey and RowKey are given, and together they name one entity."),
    Reason.CONTRADICTION: gettext_lazy("No key can meet all conditions, so that nothing is read."),
    Reason.ROW_KEY_RANGE: gettext_lazy("PartitionKey is given, and RowKey lies within bounds."),
    Reason.NO_ROW_KEY: gettext_lazy("PartitionKey is given, but nothing is said of RowKey."),
    Reason.ROW_KEY_ALTERNATIVES: gettext_lazy(
        "PartitionKey is given, but there are alternatives for RowKey."
    ),
    Reason.ROW_KEY_UNUSABLE: gettext_lazy(
        "PartitionKey is given, but what is said of RowKey sets no bounds: a negation, or a value that is no text."
    ),
    Reason.PARTITION_KEY_RANGE: gettext_lazy("PartitionKey lies within bounds, but is not one value."),
    Reason.NO_FILTER: gettext_lazy("There is no filter."),
    Reason.NO_PARTITION_KEY: gettext_lazy("Nothing is said of PartitionKey."),
    Reason.ROW_KEY_ONLY: gettext_lazy(
        "RowKey is given, but nothing is said of PartitionKey, which comes first."
    ),
    Reason.PARTITION_KEY_ALTERNATIVES: gettext_lazy(
        "There are alternatives for PartitionKey, or an “or” that leaves it open."
    ),
    Reason.PARTITION_KEY_UNUSABLE: gettext_lazy(
        "What is said of PartitionKey sets no bounds: a negation, or a value that is no text."
    ),
}


@dataclass(frozen=True, slots=True)
class Described:
    label: str
    kind: str
    icon: str
    reason: str
    on_azure: str
    here: str
    advice: str
    offer: str  # the label of what narrows the filter at once, or nothing
    has_points: bool  # whether it would be better to read each entity by its key


def describe(access: Access, estimate: Estimate | None = None) -> Described:
    look = LOOKS[access.path]
    return Described(
        str(look.label),
        look.kind,
        look.icon,
        str(REASONS[access.reason]),
        str(look.on_azure),
        _here(access, estimate),
        _advice(access),
        _offer(access.improvement),
        access.improvement is Improvement.READ_POINTS,
    )


def _here(access: Access, estimate: Estimate | None) -> str:
    if access.is_by_keys:
        return _("Read along the index of the keys; every entity that is read is an answer.")
    if estimate is not None and estimate.means is Means.PROPERTIES:
        return _("An index of the properties finds the candidates; no more is read.")
    match access.path:
        case AccessPath.TABLE_SCAN | AccessPath.PARTITION_RANGE:
            return _("Each entity is tested. After five seconds you get what was found, and can search on.")
        case _:
            return _("Read along the index of the keys; each entity is tested.")


def _advice(access: Access) -> str:
    match access.improvement:
        case None:
            return ""
        case Improvement.READ_POINTS:
            number = len(access.point_keys)
            return ngettext(
                "It names one entity: read it by its key.",
                "It names %(number)d entities: read each by its key, side by side. The code of the query can do so.",
                number,
            ) % {"number": number}
        case Improvement.ADD_ROW_KEY:
            return _("Bounds for RowKey would make it a range.")
        case Improvement.EQUAL_PARTITION_KEY:
            return _("One value for PartitionKey would keep it inside one partition.")
        case Improvement.SPLIT_BY_PARTITION:
            return _("One query for each PartitionKey would read less than all together.")
        case Improvement.ADD_PARTITION_KEY:
            return _("A PartitionKey would keep it inside one partition.")
        case _ as unknown:
            assert_never(unknown)


def _offer(improvement: Improvement | None) -> str:
    match improvement:
        case Improvement.ADD_ROW_KEY:
            return _("Add a bound for RowKey")
        case Improvement.ADD_PARTITION_KEY:
            return _("Add a PartitionKey")
        case _:
            return ""
