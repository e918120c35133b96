"""Declaration of the subject "history": see storage.core.registry."""

from datetime import timedelta

from storage.core.subject import Page, Periodic, Place, StyleSheet, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _
from storage.domain.translation import mark_plural as ngettext


class HistoryVerb(Verb):
    # recorded changes, undone together
    REVERT = Act(
        "entity.revert",
        Group.ENTITIES,
        "undo-2",
        _("%(who)s undid changes to entities"),
        several=ngettext(
            "%(who)s undid changes to %(number)s entity", "%(who)s undid changes to %(number)s entities"
        ),
        undone=ngettext("Undid changes to %(number)s entity.", "Undid changes to %(number)s entities."),
        undo=Undo(request="storage.undo.data_undo.request_revert", capability=Capability.MANAGE_TABLES),
        has_entities=True,
    )


SUBJECT = Subject(
    name="history",
    stands_on=("activity", "health"),
    api="storage.history.api",
    verbs=HistoryVerb,
    periodic=(
        Periodic(
            "feed",
            "storage.history.feed.keep_mark",
            5.0,
            "The change feed could not be marked",
            is_exclusive=False,
            takes_time=False,
        ),
        Periodic(
            "history",
            "storage.history.retention.tidy",
            30.0,
            "The history could not be tidied",
            deletes=True,
            late_after=timedelta(minutes=10),
        ),
    ),
    tidying={
        "feed": "storage.history.feed.tidy",
        "key changes": "storage.history.key_changes.tidy",
    },
    pages=(Page(Place.TABLE, 30, "activity:table", _("History"), "history"),),
    style_sheet=StyleSheet.DATA,
    urls=("console.history.urls",),
)
