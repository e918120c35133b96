"""Declaration of the subject "queries": see storage.core.registry."""

from storage.core.subject import Hook, Page, Place, StyleSheet, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _


class QueryVerb(Verb):
    # a saved query
    CREATE = Act(
        "query.create",
        Group.QUERIES,
        "bookmark",
        _("%(who)s saved the query %(query)s for %(table)s"),
        undone=_("Restored the query."),
        undo=Undo("console.queries.saved_changes.undo", Capability.WRITE, is_alone=True),
    )
    CHANGE = Act(
        "query.change",
        Group.QUERIES,
        "bookmark",
        _("%(who)s changed the query %(query)s for %(table)s"),
        undo=Undo("console.queries.saved_changes.undo", Capability.WRITE, is_alone=True),
    )
    DELETE = Act(
        "query.delete",
        Group.QUERIES,
        "bookmark",
        _("%(who)s deleted the query %(query)s for %(table)s"),
        undone=_("Deleted the query."),
        undo=Undo("console.queries.saved_changes.undo", Capability.WRITE, is_alone=True),
    )


SUBJECT = Subject(
    name="queries",
    verbs=QueryVerb,
    daily=(
        "console.queries.saved_changes.tidy",
        "console.queries.recent.tidy",
    ),
    pages=(
        Page(Place.ACCOUNT, 30, "queries:index", _("Queries"), "bookmark", letter="Q"),
        Page(Place.TABLE_SEARCH, 60, "queries:code", _("Query as code"), "code"),
        Page(Place.TABLE_SEARCH, 70, "queries:facets", _("Facets"), "filter"),
    ),
    style_sheet=StyleSheet.DATA,
    hooks={Hook.TABLE_RENAMED: "console.queries.saved_changes.follow_table"},
    urls=("console.queries.urls",),
)
