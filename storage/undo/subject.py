"""What the subject of undo contributes: see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(
    name="undo",
    jobs=("storage.undo.data_undo.UNDO_JOB",),
    api="storage.undo.api",
)
