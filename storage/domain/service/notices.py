"""Notices: conditions that people should know of, from when they are found until they are resolved."""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Self


class Severity(StrEnum):
    """The values are stored."""

    INFO = "info"  # for attention, nothing is wrong
    WARNING = "warning"  # it needs attention soon
    ERROR = "error"  # something does not work, or will be lost


class NoticeEvent(StrEnum):
    """What has become of a notice, as webhooks are told. The values are stored."""

    OPENED = "opened"
    CHANGED = "changed"  # there is news about a condition that is known already
    RESOLVED = "resolved"
    TEST = "test"  # a user wanted to see whether a webhook works


class NoticeKind(StrEnum):
    """The kinds of conditions. The values are stored; ``text`` is the sentence in English, with names of facts.

    Facts whose names end in ``_at`` are instants in ISO 8601.
    """

    text: str

    def __new__(cls, value: str, text: str = "") -> Self:
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.text = text
        return kind

    SAS_EXPIRING = "sas.expiring", "The SAS token {label} expires on {expires_at}."
    API_TOKEN_EXPIRING = "api-token.expiring", "Your API token {token} expires on {expires_at}."
    KEY_OLD = "key.old", "{key} has not been rotated for {days} days."
    JOB_FAILED = "job.failed", "The job {job} failed ({job_kind}). Failed jobs of this kind: {number}."
    ACCOUNT_EXPIRING = "account.expiring", "The account {account} expires on {expires_at} and is then frozen."
    ACCOUNT_DELETION = (
        "account.deletion",
        "The account {account} has expired. It is deleted on {deleted_at} with all its tables.",
    )
    SNAPSHOT_QUOTA = "quota.snapshots", "The account {account} has {used} of {most} snapshots."
    SAS_QUOTA = "quota.sas", "The account {account} has {used} of {most} SAS tokens."
    ERRORS_HIGH = (
        "errors.high",
        "{share} % of the requests of the last {minutes} minutes failed or were refused: {errors} of {requests}.",
    )
    LATENCY_HIGH = (
        "latency.high",
        "The slowest 5 % of the requests of the last {minutes} minutes took more than {milliseconds} ms.",
    )
    WEBHOOK_FAILING = (
        "webhook.failing",
        "The webhook {webhook} has not accepted notices since {failed_at}: {attempts} attempts failed.",
    )
    COMMENT_MENTION = "comment.mention", "{author} mentioned you in a comment on {about}."
    BACKUP_OVERDUE = "backup.overdue", "The last backup is of {made_at}, which is too long ago."
    BACKUP_FAILED = "backup.failed", "The backup of {failed_at} failed."
    BACKUP_MISSING = "backup.missing", "This server has had tables for a day and was never backed up."
    ARCHIVE_FAILING = (
        "archive.failing",
        "The archive of the database has problems, so the database may not be restorable to every moment.",
    )
    DISK_LOW = "disk.low", "The disk of the data folder has {free} MiB left."


NEWS_LENGTH: Final = 64
RETENTION_DAYS: Final = 90  # of notices that are resolved, and of deliveries that have ended
_MOMENT: Final = re.compile(r"_at$")


def read_facts(facts: Mapping[str, object]) -> dict[str, object]:
    """Return facts with their instants as such."""
    return {
        name: datetime.fromisoformat(value) if _MOMENT.search(name) and isinstance(value, str) else value
        for name, value in facts.items()
    }


def describe(kind: NoticeKind, facts: Mapping[str, object]) -> str:
    """Return the English sentence of a notice, with times in UTC."""
    written = {
        name: f"{value:%Y-%m-%d %H:%M} UTC" if isinstance(value, datetime) else value
        for name, value in read_facts(facts).items()
    }
    return kind.text.format(**written)
