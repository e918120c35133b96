"""Declaration of the subject "transfer": see storage.core.registry."""

from storage.core.subject import Page, Place, StyleSheet, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _
from storage.domain.translation import mark_plural as ngettext


class TransferVerb(Verb):
    IMPORT = Act(
        "entity.import",
        Group.ENTITIES,
        "upload",
        _("%(who)s imported entities into %(table)s"),
        several=ngettext(
            "%(who)s imported %(number)s entity into %(table)s",
            "%(who)s imported %(number)s entities into %(table)s",
        ),
        undone=ngettext("Undid changes to %(number)s entity.", "Undid changes to %(number)s entities."),
        undo=Undo(request="storage.undo.data_undo.request_revert", capability=Capability.MANAGE_TABLES),
        has_entities=True,
        is_marked=True,
    )
    EXPORT = Act(
        "entity.export",
        Group.ENTITIES,
        "file-down",
        _("%(who)s exported entities from %(table)s"),
        several=ngettext(
            "%(who)s exported %(number)s entity from %(table)s",
            "%(who)s exported %(number)s entities from %(table)s",
        ),
    )


SUBJECT = Subject(
    name="transfer",
    stands_on=("activity", "jobs", "accounts", "tables", "history", "entities"),
    api="storage.transfer.api",
    verbs=TransferVerb,
    pages=(
        Page(
            Place.ACCOUNT_SEARCH,
            20,
            "transfer:start_new",
            _("New table from a file"),
            "upload",
            Capability.MANAGE_TABLES,
        ),
        Page(Place.TABLE_SEARCH, 40, "transfer:start", _("Import"), "upload", Capability.WRITE),
        Page(Place.TABLE_SEARCH, 50, "grid:export", _("Export"), "download"),
    ),
    jobs=(
        "storage.transfer.export_jobs.TABLE_EXPORT_JOB",
        "storage.transfer.import_jobs.IMPORT_CHECK_JOB",
        "storage.transfer.import_jobs.IMPORT_JOB",
        "storage.transfer.import_jobs.LOCAL_IMPORT_JOB",
    ),
    style_sheet=StyleSheet.DATA,
    urls=("console.transfer.urls",),
)
