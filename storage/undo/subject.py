"""Declaration of the subject "undo": see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(
    name="undo",
    stands_on=("activity", "jobs", "accounts", "metrics", "history", "entities"),
    jobs=("storage.undo.data_undo.UNDO_JOB",),
    api="storage.undo.api",
)
