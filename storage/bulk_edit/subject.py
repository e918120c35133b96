"""What the subject of bulk edits contributes: see storage.core.registry."""

from storage.core.subject import Page, Place, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _
from storage.domain.translation import mark_plural as ngettext


class BulkEditVerb(Verb):
    # of all that a query finds
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
    )


SUBJECT = Subject(
    name="bulk_edit",
    verbs=BulkEditVerb,
    pages=(Page(Place.TABLE_SEARCH, 10, "entities:bulk_edit", _("Bulk edit"), "pencil", Capability.WRITE),),
    jobs=(
        "storage.bulk_edit.bulk_edit_jobs.BULK_EDIT_JOB",
        "storage.bulk_edit.bulk_edit_jobs.PREVIEW_JOB",
    ),
    api="storage.bulk_edit.api",
)
