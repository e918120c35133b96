"""Declaration of the subject "backups": see storage.core.registry."""

from storage.core.notices import Condition, NoticeKind, Severity
from storage.core.subject import (
    Command,
    CommandGroup,
    Examination,
    Hook,
    Page,
    Part,
    Place,
    Section,
    Slot,
    Subject,
)
from storage.domain.translation import mark as _


class BackupNotice(NoticeKind):
    OVERDUE = Condition(
        "backup.overdue",
        _("Backup too old"),
        _("The last backup is of %(made_at)s, which is too long ago."),
        Severity.ERROR,
        "backups/",
        "storage.backups.conditions.find_overdue",
        is_local=True,
        is_of_server=True,
    )
    FAILED = Condition(
        "backup.failed",
        _("Backup failed"),
        _("The backup of %(failed_at)s failed."),
        Severity.ERROR,
        "backups/",
        "storage.backups.conditions.find_failed",
        is_local=True,
        is_of_server=True,
    )
    MISSING = Condition(
        "backup.missing",
        _("No backup"),
        _("This server has had tables for a day and was never backed up."),
        Severity.WARNING,
        "backups/",
        "storage.backups.conditions.find_missing",
        is_local=True,
        is_of_server=True,
    )
    DRILL = Condition(
        "backup.drill",
        _("Restore drill failed"),
        _("The last drill could not restore a backup, or the next one is overdue."),
        Severity.ERROR,
        "backups/",
        "storage.backups.conditions.find_failed_drill",
        is_local=True,
        is_of_server=True,
    )
    ARCHIVE_FAILING = Condition(
        "archive.failing",
        _("Archive has problems"),
        _("The archive of the database has problems, so the database may not be restorable to every moment."),
        Severity.ERROR,
        "backups/",
        "storage.backups.conditions.find_failing_archive",
        is_local=True,
        is_of_server=True,
    )


SUBJECT = Subject(
    name="backups",
    is_optional=True,
    stands_on=("health",),
    api="storage.backups.api",
    notices=BackupNotice,
    examinations=(
        Examination("backup", "disk", "storage.backups.examination.examine_backups"),
        Examination("archive", "backup", "storage.backups.examination.examine_archive"),
    ),
    parts=(
        Part(
            Slot.HOME_ALARMS, 10, "console/backups/_alarm.html", values="console.backups.views.alarm_values"
        ),
    ),
    hooks={Hook.MEASURES: "storage.backups.measuring.measure"},
    commands=(
        Command(
            "backup", CommandGroup.SERVER, "doctor", "Back up the database and the secret, or test a backup."
        ),
        Command(
            "restore",
            CommandGroup.SERVER,
            "backup",
            "Restore a backup, or the embedded database to a moment of the past.",
        ),
        Command(
            "archive",
            CommandGroup.SERVER,
            "restore",
            "Show what can be restored from the archive, or examine all of it.",
        ),
    ),
    options=(
        "BACKUP_TO",
        "BACKUP_EVERY",
        "BACKUP_FULL_EVERY",
        "BACKUP_KEEP",
        "BACKUP_DRILL",
        "ARCHIVE",
        "ARCHIVE_KEEP",
        "ARCHIVE_SIZE",
        "ARCHIVE_BACKLOG",
    ),
    urls=("console.backups.urls",),
    pages=(
        Page(
            Place.SERVER,
            80,
            "backups:index",
            _("Backups"),
            "save",
            section=Section.SERVER,
            is_for_admins=True,
        ),
    ),
)
