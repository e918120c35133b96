"""Declaration of the subject "design": see storage.core.registry."""

from datetime import timedelta

from storage.core.notices import Condition, NoticeKind, Severity, Threshold, Unit
from storage.core.subject import (
    Command,
    CommandGroup,
    HelpEntry,
    Page,
    Part,
    Place,
    Slot,
    StyleSheet,
    Subject,
)
from storage.domain.translation import mark as _


class DesignNotice(NoticeKind):
    PARTITION_HOT = Condition(
        "partition.hot",
        _("Hot partition"),
        _(
            "The partition %(partition)s of %(table)s got %(rate)s requests a second in the last %(minutes)s minutes:"
            " %(share)s %% of those to the table, and %(percent)s %% of Azure's target for one partition."
        ),
        Severity.WARNING,
        "a/{account}/t/{subject}/design/",
        "storage.design.conditions.find_hot_partitions",
        threshold=Threshold(Unit.PERCENT, 50, 1, 100),
        calm=timedelta(minutes=10),
    )


SUBJECT = Subject(
    name="design",
    stands_on=("entities", "metrics", "tables"),
    is_optional=True,
    api="storage.design.api",
    notices=DesignNotice,
    api_tags=("Table design",),
    commands=(Command("design", CommandGroup.TABLES, "index", "Judge the design of tables."),),
    has_commands=True,
    documents=("design",),
    help_entries=(
        HelpEntry(
            "design",
            _("Table design"),
            _("Choose keys for the queries: patterns, their costs, and examples."),
            after="bulk-edit",
        ),
    ),
    pages=(
        Page(Place.TABLE, 25, "design:table", _("Design"), "target"),
        Page(Place.ACCOUNT_SEARCH, 50, "design:account", _("Table design"), "target"),
    ),
    parts=(
        Part(Slot.QUERY_ADVICE, 10, "console/design/_grid_link.html", "console.design.parts.find_query"),
        Part(
            Slot.REQUEST_QUERY, 10, "console/design/_request_link.html", "console.design.parts.find_request"
        ),
        Part(Slot.OVERVIEW_CARDS, 10, "console/design/_overview.html"),
    ),
    style_sheet=StyleSheet.DATA,
    urls=("console.design.urls",),
)
