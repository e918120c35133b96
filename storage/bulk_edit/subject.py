"""Declaration of the subject "bulk_edit": see storage.core.registry."""

from storage.core.subject import (
    Command,
    CommandGroup,
    Hook,
    JobTitle,
    Key,
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


class BulkEditVerb(Verb):
    # an edit of all entities that a query finds
    BULK_EDIT = Act(
        "entity.bulk-edit",
        Group.ENTITIES,
        "pencil",
        _("%(who)s changed %(entity)s in %(table)s"),
        several=ngettext(
            "%(who)s changed %(number)s entity in %(table)s",
            "%(who)s changed %(number)s entities in %(table)s",
        ),
        undone=ngettext("Undid changes to %(number)s entity.", "Undid changes to %(number)s entities."),
        undo=Undo(request="storage.undo.data_undo.request_revert", capability=Capability.MANAGE_TABLES),
        has_entities=True,
        is_marked=True,
    )
    # second copies of all entities that a query finds, or their repair
    SECOND_COPY = Act(
        "entity.second-copy",
        Group.ENTITIES,
        "copy",
        _("%(who)s wrote second copies of %(table)s"),
        several=ngettext(
            "%(who)s wrote the second copy of %(number)s entity of %(table)s",
            "%(who)s wrote second copies of %(number)s entities of %(table)s",
        ),
        undone=ngettext("Undid changes to %(number)s entity.", "Undid changes to %(number)s entities."),
        undo=Undo(request="storage.undo.data_undo.request_revert", capability=Capability.MANAGE_TABLES),
        has_entities=True,
        is_marked=True,
    )


SUBJECT = Subject(
    name="bulk_edit",
    stands_on=("activity", "jobs", "accounts", "metrics", "tables", "history", "entities"),
    is_optional=True,
    verbs=BulkEditVerb,
    pages=(Page(Place.TABLE_SEARCH, 10, "bulk_edit:show", _("Bulk edit"), "pencil", Capability.WRITE),),
    jobs=(
        "storage.bulk_edit.bulk_edit_jobs.BULK_EDIT_JOB",
        "storage.bulk_edit.bulk_edit_jobs.PREVIEW_JOB",
    ),
    job_titles={
        "entity.bulk-edit": JobTitle(_("Bulk edit: %(table)s")),
        "entity.bulk-edit-preview": JobTitle(_("Preview of a bulk edit: %(table)s")),
    },
    parts=(
        Part(Slot.TABLE_ACTIONS, 10, "console/bulk_edit/_link.html"),
        Part(Slot.SELECTION_ACTIONS, 10, "console/bulk_edit/_selection.html"),
    ),
    hooks={
        Hook.DELETION_PAGE: "console.bulk_edit.draft.deletion_address",
        Hook.EDIT_PAGE: "console.bulk_edit.draft.edit_address",
        Hook.JOB_DETAILS: "console.bulk_edit.job_details.find_details",
        Hook.ACTIVITY_PAGE: "console.bulk_edit.draft.next_page",
    },
    keys=(
        Key("operation.up", "Alt+Shift+ArrowUp", _("Move the operation up"), "BULK_EDIT", 0, "arrow-up"),
        Key(
            "operation.down",
            "Alt+Shift+ArrowDown",
            _("Move the operation down"),
            "BULK_EDIT",
            1,
            "arrow-down",
        ),
    ),
    commands=(
        Command("bulk-edit", CommandGroup.TABLES, "index", "Edit or delete all entities that a query finds."),
    ),
    documents=("bulk-edit",),
    style_sheet=StyleSheet.DATA,
    urls=("console.bulk_edit.urls",),
    api="storage.bulk_edit.api",
)
