"""What the subject of branches contributes: see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(
    name="branches",
    api="storage.branches.api",
    jobs=("storage.branches.branches.BRANCH_JOB", "storage.branches.snapshot_restores.RESTORE_JOB"),
)
