"""Declaration of the subject "account_files": see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(
    name="account_files",
    stands_on=(
        "activity",
        "health",
        "jobs",
        "accounts",
        "metrics",
        "tables",
        "access",
        "history",
        "entities",
        "compare",
    ),
    api="storage.account_files.api",
    jobs=(
        "storage.account_files.account_copies.COPY_JOB",
        "storage.account_files.account_export_jobs.ACCOUNT_EXPORT_JOB",
        "storage.account_files.account_import.IMPORT_JOB",
    ),
)
