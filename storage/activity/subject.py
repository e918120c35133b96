"""Declaration of the subject "activity": see storage.core.registry."""

from storage.core.subject import Page, Place, Section, StyleSheet, Subject
from storage.core.verbs import Act, Verb
from storage.domain.translation import mark as _


class ActivityVerb(Verb):
    UNDO = Act("undo")


SUBJECT = Subject(
    name="activity",
    api="storage.activity.api",
    verbs=ActivityVerb,
    tidying={"activity": "storage.activity.activity.tidy"},
    pages=(
        Page(
            Place.ACCOUNT, 70, "activity:index", _("Activity"), "history", section=Section.HISTORY, letter="A"
        ),
        Page(
            Place.SERVER,
            60,
            "activity:server_index",
            _("Activity"),
            "history",
            section=Section.SERVER,
            is_for_admins=True,
        ),
    ),
    style_sheet=StyleSheet.DATA,
    urls=("console.activity.urls",),
)
