"""Explanations of access paths: reason, cost on Azure and here, and cheaper alternatives."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from storage.domain.filters.access_plan import AccessPath, AccessPlan, AccessReason, Improvement
from storage.domain.filters.ast import mentioned_properties
from storage.entities.estimates import Estimate, ScanKind
from storage.tables.indexes import IndexUse


@dataclass(frozen=True, slots=True)
class PathText:
    label: Promise
    kind: str  # the kind of its badge
    icon: str
    on_azure: Promise


PATHS: Final[Mapping[AccessPath, PathText]] = {
    AccessPath.POINT: PathText(
        gettext_lazy("Point"), "ok", "target", gettext_lazy("Reads one entity. No query is cheaper.")
    ),
    AccessPath.RANGE: PathText(
        gettext_lazy("Range"), "accent", "move-horizontal", gettext_lazy("Reads part of one partition.")
    ),
    AccessPath.PARTITION_SCAN: PathText(
        gettext_lazy("Partition scan"), "info", "rows-3", gettext_lazy("Reads one whole partition.")
    ),
    AccessPath.PARTITION_RANGE: PathText(
        gettext_lazy("Partition range"),
        "info",
        "columns-3",
        gettext_lazy("Reads several partitions. Expect a continuation token wherever a partition ends."),
    ),
    AccessPath.TABLE_SCAN: PathText(
        gettext_lazy("Table scan"),
        "warn",
        "table-2",
        gettext_lazy("Reads the whole table. Expect pages with few or no entities and a continuation token."),
    ),
}
# without a filter nothing is wrong: the entities are just looked through
BROWSE: Final = PathText(
    gettext_lazy("Browse"),
    "",
    "table-2",
    gettext_lazy("Reads the table page by page, in the order of its keys."),
)


def explain_access(
    access: AccessPlan, indexes: IndexUse, estimate: Estimate | None, *, is_sorted: bool
) -> dict[str, Any]:
    """Describe the access path of a query; without filter and sorting, it browses in key order."""
    is_browsing = access.reason is AccessReason.NO_FILTER and not is_sorted
    return {
        "path": BROWSE if is_browsing else _name_path(access, indexes),
        "reason": _(access.reason.value),
        "here": _("Reads one page of the key index.")
        if is_browsing
        else _explain_server(access, indexes, estimate),
        "on_cosmos": "" if access.is_by_keys else _ON_COSMOS,
        "advice": "" if is_browsing else _advise(access),
        "index": _advise_index(access, indexes, estimate),
        # whether reading each entity by its key would cost less
        "has_point_reads": access.improvement is Improvement.READ_POINTS,
    }


_ON_COSMOS: Final = gettext_lazy(
    "Its automatic indexes of all properties find the entities; each one costs request units."
)


def _name_path(access: AccessPlan, indexes: IndexUse) -> PathText:
    text = PATHS[access.path]
    if not indexes.is_range:
        return text
    return replace(text, label=gettext_lazy("Index range"), kind="accent", icon="move-horizontal")


def _advise_index(access: AccessPlan, indexes: IndexUse, estimate: Estimate | None) -> dict[str, Any] | None:
    """Return the properties to index for the query, with the expected saving; None if there are none."""
    names = sorted(indexes.candidates)
    if not names:
        return None
    residual = access.bounds.residual
    if estimate is None or residual is None or mentioned_properties(residual) != {names[0]}:
        return {"names": names, "text": _("An index would find the entities without reading all of them.")}
    text = _("With an index on %(name)s, about %(returned)s entities are read instead of %(read)s.")
    numbers = {"returned": _group(estimate.returned), "read": _group(estimate.looked_at)}
    return {"names": names, "text": text % {"name": names[0], **numbers}}


def _group(number: int) -> str:
    return str(number_format(number, force_grouping=True))


def _explain_server(access: AccessPlan, indexes: IndexUse, estimate: Estimate | None) -> str:
    if indexes.is_range:
        return _("The index of a property finds the entities, and only those are read.")
    if access.is_by_keys:
        return _("Reads the key index. Every entity read matches.")
    if estimate is not None and estimate.scan_kind is ScanKind.PROPERTIES:
        return _("A property index finds the candidates, and only those are read.")
    if access.path in (AccessPath.TABLE_SCAN, AccessPath.PARTITION_RANGE):
        return _(
            "Tests every entity. After five seconds you get the matches so far and can continue searching."
        )
    return _("Reads the key index and tests each entity.")


def _advise(access: AccessPlan) -> str:
    match access.improvement:
        case None:
            return ""
        case Improvement.READ_POINTS:
            number = len(access.point_keys)
            return ngettext(
                "The filter names one entity. Read it by its key.",
                "The filter names %(number)d entities. Read each by its key, in parallel, as the generated code does.",
                number,
            ) % {"number": number}
        case Improvement.ADD_ROW_KEY:
            return _("Limit RowKey to turn this into a range query.")
        case Improvement.EQUAL_PARTITION_KEY:
            return _("Set PartitionKey to one value to stay within one partition.")
        case Improvement.SPLIT_BY_PARTITION:
            return _("Run one query per PartitionKey to read less in total.")
        case Improvement.ADD_PARTITION_KEY:
            return _("Set PartitionKey to stay within one partition.")
        case _ as unknown:
            assert_never(unknown)
