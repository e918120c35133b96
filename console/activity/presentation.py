"""How the console shows each verb of the activity log: its group, icon, sentence, and what an undo reports.

To add a verb:

1. Add it to ``Verb`` in ``storage/domain/service/activity.py``, and record it in the operation that does it with
   ``activity.record``.
2. Add its entry to ``PRESENTATIONS`` below. A sentence may use the words of ``console/activity/sentences.py``, such as
   ``%(who)s`` or ``%(table)s``; an activity that can change several entities also needs ``several``.
3. If it can be undone, give the verb the capability that undoing needs, and register how to undo it: in
   ``storage/operations/undo/undo.py``, or in ``console/activity/undo.py`` for what only the console stores.

``tests/console/activity/test_presentation.py`` fails until every verb has an entry that agrees with the domain.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from storage.domain.service.activity import Verb

Plural = Callable[[int], str]


class Group(StrEnum):
    """The choices of the activity filter; the values appear in URLs."""

    ENTITIES = "entities"
    TABLES = "tables"
    QUERIES = "queries"
    COMMENTS = "comments"
    ACCESS = "access"
    SNAPSHOTS = "snapshots"
    SETTINGS = "settings"
    PEOPLE = "people"


GROUP_LABELS: Final[Mapping[Group, Promise]] = {
    Group.ENTITIES: _("Entities"),
    Group.TABLES: _("Tables"),
    Group.QUERIES: _("Saved queries"),
    Group.COMMENTS: _("Comments"),
    Group.ACCESS: _("Policies and keys"),
    Group.SNAPSHOTS: _("Snapshots and branches"),
    Group.SETTINGS: _("Account and service"),
    Group.PEOPLE: _("People"),
}

# what was done to entities
OP_LABELS: Final[Mapping[str, Promise]] = {
    "inserts": _("Entities: inserted"),
    "updates": _("Entities: changed"),
    "deletes": _("Entities: deleted"),
}


@dataclass(frozen=True, slots=True)
class Presentation:
    """``undone`` reports an undo that had this effect; without it, the report is a general one."""

    group: Group
    icon: str
    sentence: Promise
    several: Plural | None = None  # replaces the sentence if several entities were changed
    undone: Plural | None = None


def _table_restored(number: int) -> str:
    if number == 1:
        return gettext("Restored %(table)s.")
    return ngettext("Restored %(number)s table.", "Restored %(number)s tables.", number)


def _table_deleted(number: int) -> str:
    if number == 1:
        return gettext("Deleted %(table)s.")
    return ngettext("Deleted %(number)s table.", "Deleted %(number)s tables.", number)


PRESENTATIONS: Final[Mapping[Verb, Presentation]] = {
    Verb.ENTITY_INSERT: Presentation(
        Group.ENTITIES,
        "circle-plus",
        _("%(who)s inserted %(entity)s into %(table)s"),
        lambda number: ngettext(
            "%(who)s inserted %(number)s entity into %(table)s",
            "%(who)s inserted %(number)s entities into %(table)s",
            number,
        ),
        lambda number: ngettext(
            "Restored %(number)s entity in %(table)s.", "Restored %(number)s entities in %(table)s.", number
        ),
    ),
    Verb.ENTITY_CHANGE: Presentation(
        Group.ENTITIES,
        "pencil",
        _("%(who)s changed %(entity)s in %(table)s"),
        lambda number: ngettext(
            "%(who)s changed %(number)s entity in %(table)s",
            "%(who)s changed %(number)s entities in %(table)s",
            number,
        ),
        lambda number: ngettext(
            "Reverted %(number)s entity in %(table)s.", "Reverted %(number)s entities in %(table)s.", number
        ),
    ),
    Verb.ENTITY_DELETE: Presentation(
        Group.ENTITIES,
        "trash-2",
        _("%(who)s deleted %(entity)s from %(table)s"),
        lambda number: ngettext(
            "%(who)s deleted %(number)s entity from %(table)s",
            "%(who)s deleted %(number)s entities from %(table)s",
            number,
        ),
        lambda number: ngettext(
            "Deleted %(number)s entity from %(table)s.", "Deleted %(number)s entities from %(table)s.", number
        ),
    ),
    Verb.ENTITY_REKEY: Presentation(
        Group.ENTITIES,
        "arrow-left-right",
        _("%(who)s changed the key of an entity in %(table)s to %(entity)s"),
        undone=lambda number: gettext("Restored the previous key of the entity in %(table)s."),
    ),
    Verb.ENTITY_REVERT: Presentation(
        Group.ENTITIES,
        "undo-2",
        _("%(who)s undid changes to entities"),
        lambda number: ngettext(
            "%(who)s undid changes to %(number)s entity",
            "%(who)s undid changes to %(number)s entities",
            number,
        ),
        lambda number: ngettext(
            "Undid changes to %(number)s entity.", "Undid changes to %(number)s entities.", number
        ),
    ),
    Verb.ENTITY_APPLY: Presentation(
        Group.ENTITIES,
        "arrow-left-right",
        _("%(who)s applied a comparison"),
        lambda number: ngettext(
            "%(who)s applied a comparison to %(number)s entity",
            "%(who)s applied a comparison to %(number)s entities",
            number,
        ),
        lambda number: ngettext(
            "Undid changes to %(number)s entity.", "Undid changes to %(number)s entities.", number
        ),
    ),
    Verb.ENTITY_BULK_EDIT: Presentation(
        Group.ENTITIES,
        "pencil",
        _("%(who)s changed %(entity)s in %(table)s"),
        lambda number: ngettext(
            "%(who)s changed %(number)s entity in %(table)s",
            "%(who)s changed %(number)s entities in %(table)s",
            number,
        ),
        lambda number: ngettext(
            "Undid changes to %(number)s entity.", "Undid changes to %(number)s entities.", number
        ),
    ),
    Verb.ENTITY_IMPORT: Presentation(
        Group.ENTITIES,
        "upload",
        _("%(who)s imported entities into %(table)s"),
        lambda number: ngettext(
            "%(who)s imported %(number)s entity into %(table)s",
            "%(who)s imported %(number)s entities into %(table)s",
            number,
        ),
        lambda number: ngettext(
            "Undid changes to %(number)s entity.", "Undid changes to %(number)s entities.", number
        ),
    ),
    Verb.ENTITY_COPY_IN: Presentation(
        Group.ENTITIES,
        "upload",
        _("%(who)s copied entities from another service"),
        lambda number: ngettext(
            "%(who)s copied %(number)s entity from another service",
            "%(who)s copied %(number)s entities from another service",
            number,
        ),
        lambda number: ngettext(
            "Undid changes to %(number)s entity.", "Undid changes to %(number)s entities.", number
        ),
    ),
    Verb.ENTITY_COPY_OUT: Presentation(
        Group.ENTITIES,
        "file-down",
        _("%(who)s copied entities to another service"),
        lambda number: ngettext(
            "%(who)s copied %(number)s entity to another service",
            "%(who)s copied %(number)s entities to another service",
            number,
        ),
    ),
    Verb.ENTITY_EXPORT: Presentation(
        Group.ENTITIES,
        "file-down",
        _("%(who)s exported entities from %(table)s"),
        lambda number: ngettext(
            "%(who)s exported %(number)s entity from %(table)s",
            "%(who)s exported %(number)s entities from %(table)s",
            number,
        ),
    ),
    Verb.TABLE_CREATE: Presentation(Group.TABLES, "table-2", _("%(who)s created the table %(table)s")),
    Verb.TABLE_CHANGE: Presentation(
        Group.TABLES, "table-2", _("%(who)s changed the notes for the table %(table)s")
    ),
    Verb.TABLE_DELETE: Presentation(
        Group.TABLES,
        "trash-2",
        _("%(who)s deleted the table %(table)s"),
        undone=_table_deleted,
    ),
    Verb.TABLE_RESTORE: Presentation(
        Group.TABLES,
        "rotate-ccw",
        _("%(who)s restored the table %(table)s"),
        undone=_table_restored,
    ),
    Verb.TABLE_DISTRIBUTE: Presentation(
        Group.TABLES, "database", _("%(who)s distributed the table %(table)s over the nodes of the cluster")
    ),
    Verb.TABLE_UNDISTRIBUTE: Presentation(
        Group.TABLES, "database", _("%(who)s brought the table %(table)s back to the coordinator")
    ),
    Verb.INDEX_ADD: Presentation(
        Group.TABLES,
        "rows-3",
        _("%(who)s added an index on %(property)s to %(table)s"),
        undone=lambda number: gettext("Added the index again."),
    ),
    Verb.INDEX_DROP: Presentation(
        Group.TABLES,
        "rows-3",
        _("%(who)s dropped the index on %(property)s of %(table)s"),
        undone=lambda number: gettext("Dropped the index."),
    ),
    Verb.INDEX_KEEP: Presentation(
        Group.TABLES,
        "rows-3",
        _("%(who)s kept the index on %(property)s of %(table)s"),
        undone=lambda number: gettext("The server may drop the index again."),
    ),
    Verb.QUERY_CREATE: Presentation(
        Group.QUERIES,
        "bookmark",
        _("%(who)s saved the query %(query)s for %(table)s"),
        undone=lambda number: gettext("Restored the query."),
    ),
    Verb.QUERY_CHANGE: Presentation(
        Group.QUERIES, "bookmark", _("%(who)s changed the query %(query)s for %(table)s")
    ),
    Verb.QUERY_DELETE: Presentation(
        Group.QUERIES,
        "bookmark",
        _("%(who)s deleted the query %(query)s for %(table)s"),
        undone=lambda number: gettext("Deleted the query."),
    ),
    Verb.COMMENT_CREATE: Presentation(
        Group.COMMENTS,
        "message-square",
        _("%(who)s wrote %(comment)s in %(table)s"),
        undone=lambda number: gettext("Restored the comment."),
    ),
    Verb.COMMENT_CHANGE: Presentation(
        Group.COMMENTS, "message-square", _("%(who)s changed %(comment)s in %(table)s")
    ),
    Verb.COMMENT_DELETE: Presentation(
        Group.COMMENTS,
        "message-square",
        _("%(who)s deleted %(comment)s in %(table)s"),
        undone=lambda number: gettext("Deleted the comment."),
    ),
    Verb.COMMENT_RESOLVE: Presentation(
        Group.COMMENTS,
        "check",
        _("%(who)s resolved the thread of %(comment)s in %(table)s"),
        undone=lambda number: gettext("Resolved the thread again."),
    ),
    Verb.COMMENT_REOPEN: Presentation(
        Group.COMMENTS,
        "rotate-ccw",
        _("%(who)s reopened the thread of %(comment)s in %(table)s"),
        undone=lambda number: gettext("Reopened the thread."),
    ),
    Verb.POLICIES_SET: Presentation(
        Group.ACCESS, "shield", _("%(who)s changed the access policies of %(table)s")
    ),
    Verb.SAS_ISSUE: Presentation(Group.ACCESS, "ticket", _("%(who)s created the SAS token %(sas)s")),
    Verb.SAS_CHANGE: Presentation(
        Group.ACCESS, "ticket", _("%(who)s changed the notes for the SAS token %(sas)s")
    ),
    Verb.SAS_BLOCK: Presentation(Group.ACCESS, "ban", _("%(who)s blocked the SAS token %(sas)s")),
    Verb.SAS_UNBLOCK: Presentation(Group.ACCESS, "ticket", _("%(who)s unblocked the SAS token %(sas)s")),
    Verb.KEY_REVEAL: Presentation(Group.ACCESS, "eye", _("%(who)s revealed %(key)s")),
    Verb.KEY_COPY: Presentation(Group.ACCESS, "copy", _("%(who)s copied %(key)s")),
    Verb.KEY_ROTATE: Presentation(Group.ACCESS, "rotate-ccw-key", _("%(who)s rotated %(key)s")),
    Verb.KEY_END: Presentation(Group.ACCESS, "key-round", _("%(who)s ended the grace period of %(key)s")),
    Verb.API_TOKEN_ISSUE: Presentation(
        Group.ACCESS, "plug", _("%(who)s created the API token %(token)s for %(user)s")
    ),
    Verb.API_TOKEN_REVOKE: Presentation(
        Group.ACCESS, "plug", _("%(who)s revoked the API token %(token)s of %(user)s")
    ),
    Verb.ACCOUNT_CREATE: Presentation(
        Group.SETTINGS, "database", _("%(who)s created the account %(account)s")
    ),
    Verb.ACCOUNT_CHANGE: Presentation(
        Group.SETTINGS, "database", _("%(who)s changed settings of the account %(account)s")
    ),
    Verb.ACCOUNT_EXPIRE: Presentation(
        Group.SETTINGS, "hourglass", _("%(who)s froze the expired account %(account)s")
    ),
    Verb.ACCOUNT_DELETE: Presentation(
        Group.SETTINGS, "trash-2", _("%(who)s deleted the account %(account)s")
    ),
    Verb.PROPERTIES_SET: Presentation(
        Group.SETTINGS, "sliders-horizontal", _("%(who)s changed the service properties")
    ),
    Verb.SNAPSHOT_TAKE: Presentation(
        Group.SNAPSHOTS, "camera", _("%(who)s took the snapshot %(snapshot)s of %(account)s")
    ),
    Verb.SNAPSHOT_CHANGE: Presentation(
        Group.SNAPSHOTS, "camera", _("%(who)s changed the snapshot %(snapshot)s of %(account)s")
    ),
    Verb.SNAPSHOT_DELETE: Presentation(
        Group.SNAPSHOTS, "trash-2", _("%(who)s deleted the snapshot %(snapshot)s of %(account)s")
    ),
    Verb.SNAPSHOT_SCHEDULE: Presentation(
        Group.SNAPSHOTS, "calendar", _("%(who)s changed the schedule of snapshots of %(account)s")
    ),
    Verb.SNAPSHOT_RESTORE: Presentation(
        Group.SNAPSHOTS,
        "rotate-ccw",
        _("%(who)s restored the snapshot %(snapshot)s of %(account)s"),
        undone=lambda number: gettext("Restored the state before it."),
    ),
    Verb.BRANCH_CREATE: Presentation(
        Group.SNAPSHOTS, "git-branch", _("%(who)s created branch %(branch)s from %(account)s")
    ),
    Verb.JOB_CANCEL: Presentation(Group.SETTINGS, "ban", _("%(who)s cancelled the job %(job)s")),
    Verb.JOB_PAUSE: Presentation(Group.SETTINGS, "pause", _("%(who)s paused the job %(job)s")),
    Verb.JOB_RESUME: Presentation(Group.SETTINGS, "play", _("%(who)s resumed the job %(job)s")),
    Verb.WEBHOOK_CREATE: Presentation(Group.SETTINGS, "bell", _("%(who)s created the webhook %(webhook)s")),
    Verb.WEBHOOK_CHANGE: Presentation(Group.SETTINGS, "bell", _("%(who)s changed the webhook %(webhook)s")),
    Verb.WEBHOOK_DELETE: Presentation(
        Group.SETTINGS, "bell-off", _("%(who)s deleted the webhook %(webhook)s")
    ),
    Verb.NOTICE_RULE: Presentation(
        Group.SETTINGS, "bell", _("%(who)s changed the notices of the kind %(notice)s")
    ),
    Verb.DEPLOYMENT_MARK: Presentation(Group.SETTINGS, "rocket", _("%(who)s deployed %(deployment)s")),
    Verb.SIGN_IN: Presentation(Group.PEOPLE, "log-in", _("%(who)s signed in")),
    Verb.SIGN_OUT: Presentation(Group.PEOPLE, "log-out", _("%(who)s signed out")),
    Verb.SIGN_IN_FAILED: Presentation(
        Group.PEOPLE, "shield-alert", _("Someone failed to sign in as %(who)s")
    ),
    Verb.USER_INVITE: Presentation(Group.PEOPLE, "mail-plus", _("%(who)s invited someone")),
    Verb.USER_CREATE: Presentation(Group.PEOPLE, "user-plus", _("%(who)s created the user %(user)s")),
    Verb.USER_CHANGE: Presentation(Group.PEOPLE, "user", _("%(who)s changed the user %(user)s")),
    Verb.USER_REMOVE: Presentation(Group.PEOPLE, "user-x", _("%(who)s deleted the user %(user)s")),
    Verb.MEMBER_SET: Presentation(Group.PEOPLE, "users", _("%(who)s gave %(user)s the role %(role)s")),
    Verb.MEMBER_REMOVE: Presentation(
        Group.PEOPLE, "user-minus", _("%(who)s removed %(user)s from the account")
    ),
}


# of a verb that only a newer version knows, which runs beside this one
_UNKNOWN: Final = Presentation(
    Group.SETTINGS,
    "circle-help",
    _("%(who)s did something that a newer version of Tablero has recorded: %(verb)s"),
)


def presentation_of(verb: Verb) -> Presentation:
    return PRESENTATIONS.get(verb, _UNKNOWN)


def verbs_of(group: str) -> tuple[Verb, ...]:
    return tuple(verb for verb, shown in PRESENTATIONS.items() if shown.group == group)
