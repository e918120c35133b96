"""Declaration of the subject "tables": see storage.core.registry."""

from datetime import timedelta

from storage.core.subject import JobTitle, Page, Periodic, Place, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _
from storage.domain.translation import mark_plural as ngettext


class TableVerb(Verb):
    CREATE = Act(
        "table.create",
        Group.TABLES,
        "table-2",
        _("%(who)s created the table %(table)s"),
        undo=Undo("storage.tables.undo.undo_creation", Capability.MANAGE_TABLES, changes_catalog=True),
        is_marked=True,
    )
    # description, tags
    CHANGE = Act(
        "table.change",
        Group.TABLES,
        "table-2",
        _("%(who)s changed the notes for the table %(table)s"),
        undo=Undo("storage.tables.undo.undo_table_change", Capability.MANAGE_TABLES),
    )
    DELETE = Act(
        "table.delete",
        Group.TABLES,
        "trash-2",
        _("%(who)s deleted the table %(table)s"),
        undone=ngettext("Deleted %(number)s table.", "Deleted %(number)s tables.", _("Deleted %(table)s.")),
        undo=Undo("storage.tables.undo.undo_deletion", Capability.MANAGE_TABLES),
        is_marked=True,
    )
    RESTORE = Act(
        "table.restore",
        Group.TABLES,
        "rotate-ccw",
        _("%(who)s restored the table %(table)s"),
        undone=ngettext(
            "Restored %(number)s table.", "Restored %(number)s tables.", _("Restored %(table)s.")
        ),
        undo=Undo("storage.tables.undo.undo_creation", Capability.MANAGE_TABLES, changes_catalog=True),
        is_marked=True,
    )
    RENAME = Act(
        "table.rename",
        Group.TABLES,
        "pencil",
        _("%(who)s renamed the table %(former)s to %(table)s"),
        undone=_("Renamed to %(table)s."),
        undo=Undo("storage.tables.undo.undo_renaming", Capability.MANAGE_TABLES, changes_catalog=True),
        is_marked=True,
    )
    COPY = Act(
        "table.copy",
        Group.TABLES,
        "copy-plus",
        _("%(who)s copied the table %(former)s to %(table)s"),
        undo=Undo("storage.tables.undo.undo_creation", Capability.MANAGE_TABLES, changes_catalog=True),
        is_marked=True,
    )
    # verbs of the index of a property
    INDEX_ADD = Act(
        "index.add",
        Group.TABLES,
        "rows-3",
        _("%(who)s added an index on %(property)s to %(table)s"),
        undone=_("Added the index again."),
        undo=Undo("storage.tables.undo.undo_new_index", Capability.MANAGE_TABLES),
        is_marked=True,
    )
    INDEX_DROP = Act(
        "index.drop",
        Group.TABLES,
        "rows-3",
        _("%(who)s dropped the index on %(property)s of %(table)s"),
        undone=_("Dropped the index."),
        undo=Undo("storage.tables.undo.undo_dropped_index", Capability.MANAGE_TABLES),
        is_marked=True,
    )
    # that the server has made
    INDEX_KEEP = Act(
        "index.keep",
        Group.TABLES,
        "rows-3",
        _("%(who)s kept the index on %(property)s of %(table)s"),
        undone=_("The server may drop the index again."),
        undo=Undo("storage.tables.undo.undo_kept_index", Capability.MANAGE_TABLES),
    )


SUBJECT = Subject(
    name="tables",
    stands_on=("activity", "health", "jobs", "accounts", "metrics"),
    api="storage.tables.api",
    verbs=TableVerb,
    periodic=(
        Periodic(
            "deleted tables",
            "storage.tables.tables.drop_expired_tables",
            10.0,
            "Deleted tables could not be dropped",
            is_exclusive=False,
            deletes=True,
            takes_time=False,
        ),
        Periodic(
            "pending tables",
            "storage.relations.table_relations.make_pending",
            5.0,
            "New tables could not get their relations",
            is_exclusive=False,
            takes_time=False,
        ),
        Periodic(
            "new indexes",
            "storage.tables.adaptive_indexes.add_for_new_scans",
            0.25,
            "Adaptive indexes could not be added",
            is_exclusive=False,
            is_wanted="storage.tables.adaptive_indexes.has_new_scans",
        ),
        Periodic(
            "indexes",
            "storage.tables.adaptive_indexes.adapt",
            60.0,
            "Adaptive indexes could not be decided on",
            late_after=timedelta(minutes=20),
        ),
        Periodic(
            "tables",
            "storage.relations.table_relations.complete_all",
            60.0,
            "Tables of older servers could not be completed",
            late_after=timedelta(minutes=20),
            takes_time=False,
        ),
        Periodic(
            "old rows",
            "storage.relations.old_rows.rewrite",
            10.0,
            "Rows of older versions could not be rewritten",
            is_wanted="storage.relations.old_rows.is_left",
        ),
    ),
    tidying={"indexes": "storage.tables.adaptive_indexes.tidy"},
    pages=(
        Page(Place.ACCOUNT, 20, "tables:index", _("Tables"), "table-2", letter="T"),
        Page(Place.TABLE, 20, "tables:schema", _("Schema"), "columns-3"),
        Page(Place.TABLE, 60, "tables:settings", _("Settings"), "settings"),
        Page(
            Place.TABLE_SEARCH,
            80,
            "tables:settings",
            _("Rename or copy table"),
            "pencil",
            Capability.MANAGE_TABLES,
        ),
        Page(Place.ACCOUNT_SEARCH, 10, "tables:new", _("New table"), "plus", Capability.MANAGE_TABLES),
    ),
    jobs=("storage.tables.indexes.INDEX_JOB", "storage.tables.table_copies.COPY_JOB"),
    job_titles={"table.copy": JobTitle(_("Copy %(origin)s to %(name)s"))},
    urls=("console.tables.urls",),
)
