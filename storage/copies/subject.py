"""Declaration of the subject "copies": see storage.core.registry."""

from storage.core.subject import (
    Command,
    CommandGroup,
    Hook,
    JobTitle,
    Page,
    Part,
    Place,
    Slot,
    StyleSheet,
    Subject,
)
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _
from storage.domain.translation import mark_plural as ngettext


class CopyVerb(Verb):
    # from another service
    COPY_IN = Act(
        "entity.copy-in",
        Group.ENTITIES,
        "upload",
        _("%(who)s copied entities from another service"),
        several=ngettext(
            "%(who)s copied %(number)s entity from another service",
            "%(who)s copied %(number)s entities from another service",
        ),
        undone=ngettext("Undid changes to %(number)s entity.", "Undid changes to %(number)s entities."),
        undo=Undo(request="storage.undo.data_undo.request_revert", capability=Capability.MANAGE_TABLES),
        has_entities=True,
        is_marked=True,
    )
    # to another service
    COPY_OUT = Act(
        "entity.copy-out",
        Group.ENTITIES,
        "file-down",
        _("%(who)s copied entities to another service"),
        several=ngettext(
            "%(who)s copied %(number)s entity to another service",
            "%(who)s copied %(number)s entities to another service",
        ),
    )


SUBJECT = Subject(
    name="copies",
    stands_on=("activity", "jobs", "accounts", "tables", "access", "entities", "transfer"),
    is_optional=True,
    verbs=CopyVerb,
    pages=(Page(Place.ACCOUNT_SEARCH, 30, "copies:start", _("Copy tables"), "copy", Capability.CONFIGURE),),
    jobs=(
        "storage.copies.copy_jobs.COPY_IN_JOB",
        "storage.copies.copy_jobs.COPY_OUT_JOB",
    ),
    job_titles={
        "account.copy-in": JobTitle(
            _("Copy from %(service)s"), _("Preview a copy from %(service)s"), ("options", "dry_run")
        ),
        "account.copy-out": JobTitle(
            _("Copy to %(service)s"), _("Preview a copy to %(service)s"), ("options", "dry_run")
        ),
    },
    parts=(
        Part(Slot.TABLE_SOURCES, 10, "console/copies/_link.html"),
        Part(Slot.FIRST_TABLE_SOURCES, 10, "console/copies/_first.html"),
        Part(Slot.OVERVIEW_SOURCES, 10, "console/copies/_overview.html"),
    ),
    hooks={
        Hook.JOB_DETAILS: "console.copies.copied_tables.find_details",
        Hook.RESEAL: "storage.copies.copy_jobs.reseal",
    },
    commands=(
        Command(
            "copy",
            CommandGroup.TABLES,
            "index",
            "Copy tables from Azure, Azurite or another server to an account, or back.",
        ),
    ),
    options=("COPY_NETWORKS",),
    style_sheet=StyleSheet.DATA,
    urls=("console.copies.urls",),
    api="storage.copies.api",
)
