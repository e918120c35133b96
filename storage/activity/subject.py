"""What the subject of the activity log contributes: see storage.core.registry."""

from storage.core.subject import Subject
from storage.core.verbs import Act, Verb


class ActivityVerb(Verb):
    UNDO = Act("undo")


SUBJECT = Subject(
    name="activity",
    verbs=ActivityVerb,
    tidying={"activity": "storage.operations.activity.activity.tidy"},
)
