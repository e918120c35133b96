"""Declaration of the subject "branches": see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(
    name="branches",
    stands_on=(
        "activity",
        "jobs",
        "accounts",
        "tables",
        "access",
        "history",
        "snapshots",
        "undo",
        "compare",
        "account_files",
    ),
    api="storage.branches.api",
    jobs=("storage.branches.branches.BRANCH_JOB", "storage.branches.snapshot_restores.RESTORE_JOB"),
)
