"""Declaration of the subject "compare": see storage.core.registry."""

from storage.core.subject import Page, Place, Section, StyleSheet, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _
from storage.domain.translation import mark_plural as ngettext


class CompareVerb(Verb):
    # a comparison, to make a side equal to the other
    APPLY = Act(
        "entity.apply",
        Group.ENTITIES,
        "arrow-left-right",
        _("%(who)s applied a comparison"),
        several=ngettext(
            "%(who)s applied a comparison to %(number)s entity",
            "%(who)s applied a comparison to %(number)s entities",
        ),
        undone=ngettext("Undid changes to %(number)s entity.", "Undid changes to %(number)s entities."),
        undo=Undo(request="storage.undo.data_undo.request_revert", capability=Capability.MANAGE_TABLES),
        has_entities=True,
    )


SUBJECT = Subject(
    name="compare",
    stands_on=("activity", "jobs", "accounts", "tables", "access", "history", "snapshots", "undo"),
    verbs=CompareVerb,
    pages=(
        Page(
            Place.ACCOUNT,
            90,
            "compare:index",
            _("Compare"),
            "arrow-left-right",
            section=Section.HISTORY,
            letter="C",
        ),
    ),
    jobs=("storage.compare.applying.APPLY_JOB",),
    api="storage.compare.api",
    style_sheet=StyleSheet.DATA,
    urls=("console.compare.urls",),
)
