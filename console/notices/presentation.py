"""Notices in the language of their reader: a title for each kind, and the sentence of each notice."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.site.times import to_local
from storage.domain.service.notices import NoticeEvent, NoticeKind, Severity
from storage.domain.values.stored import read_member
from storage.models import Notice
from storage.operations.notices import presentation
from storage.operations.notices.conditions import Unit

# what of a page a notice is about
_QUERIES: Final[Mapping[NoticeKind, str]] = {
    NoticeKind.ERRORS_HIGH: "?span=hour&kind=problem",
    NoticeKind.LATENCY_HIGH: "?span=hour&kind=slow",
}
TITLES: Final[Mapping[NoticeKind, Promise]] = {
    NoticeKind.SAS_EXPIRING: _("SAS token expires"),
    NoticeKind.API_TOKEN_EXPIRING: _("API token expires"),
    NoticeKind.KEY_OLD: _("Key not rotated"),
    NoticeKind.JOB_FAILED: _("Job failed"),
    NoticeKind.ACCOUNT_EXPIRING: _("Account expires"),
    NoticeKind.ACCOUNT_DELETION: _("Account is about to be deleted"),
    NoticeKind.SNAPSHOT_QUOTA: _("Quota of snapshots"),
    NoticeKind.SAS_QUOTA: _("Quota of SAS tokens"),
    NoticeKind.ERRORS_HIGH: _("Many requests fail"),
    NoticeKind.LATENCY_HIGH: _("Slow requests"),
    NoticeKind.WEBHOOK_FAILING: _("Webhook fails"),
    NoticeKind.COMMENT_MENTION: _("You were mentioned"),
    NoticeKind.BACKUP_OVERDUE: _("Backup too old"),
    NoticeKind.BACKUP_FAILED: _("Backup failed"),
    NoticeKind.BACKUP_MISSING: _("No backup"),
    NoticeKind.ARCHIVE_FAILING: _("Archive has problems"),
    NoticeKind.DISK_LOW: _("Disk almost full"),
}
TEXTS: Final[Mapping[NoticeKind, Promise]] = {
    NoticeKind.SAS_EXPIRING: _("The SAS token “%(label)s” expires on %(expires_at)s."),
    NoticeKind.API_TOKEN_EXPIRING: _("Your API token “%(token)s” expires on %(expires_at)s."),
    NoticeKind.KEY_OLD: _("%(key)s has not been rotated for %(days)s days."),
    NoticeKind.JOB_FAILED: _("The job %(job)s failed. Failed jobs of this kind: %(number)s."),
    NoticeKind.ACCOUNT_EXPIRING: _(
        "The account %(account)s expires on %(expires_at)s. It is frozen then, and deleted a day later."
    ),
    NoticeKind.ACCOUNT_DELETION: _(
        "The account %(account)s has expired. It is deleted on %(deleted_at)s with all its tables."
    ),
    NoticeKind.SNAPSHOT_QUOTA: _("The account %(account)s has %(used)s of %(most)s snapshots."),
    NoticeKind.SAS_QUOTA: _("The account %(account)s has %(used)s of %(most)s SAS tokens."),
    NoticeKind.ERRORS_HIGH: _(
        "%(share)s %% of the requests of the last %(minutes)s minutes failed or were refused: %(errors)s of "
        "%(requests)s."
    ),
    NoticeKind.LATENCY_HIGH: _(
        "The slowest 5 %% of the requests of the last %(minutes)s minutes took more than %(milliseconds)s ms."
    ),
    NoticeKind.WEBHOOK_FAILING: _(
        "The webhook “%(webhook)s” has not accepted notices since %(failed_at)s: %(attempts)s attempts failed."
    ),
    NoticeKind.COMMENT_MENTION: _("%(author)s mentioned you in a comment on %(about)s."),
    NoticeKind.BACKUP_OVERDUE: _("The last backup is of %(made_at)s, which is too long ago."),
    NoticeKind.BACKUP_FAILED: _("The backup of %(failed_at)s failed."),
    NoticeKind.BACKUP_MISSING: _("This server has had tables for a day and was never backed up."),
    NoticeKind.ARCHIVE_FAILING: _(
        "The archive of the database has problems, so the database may not be restorable to every moment."
    ),
    NoticeKind.DISK_LOW: _("The disk of the data folder has %(free)s MiB left."),
}
# of a kind that only a newer version knows, which runs beside this one
_UNKNOWN: Final = _("A newer version of Tablero on the same database has found this.")
UNITS: Final[Mapping[Unit, Promise]] = {
    Unit.DAYS: _("days"),
    Unit.PERCENT: _("percent"),
    Unit.MILLISECONDS: _("milliseconds"),
}
EVENTS: Final[Mapping[str, Promise]] = {
    NoticeEvent.OPENED: _("opened"),
    NoticeEvent.CHANGED: _("changed"),
    NoticeEvent.RESOLVED: _("resolved"),
}
_BADGES: Final[Mapping[Severity, tuple[str, str, Promise]]] = {
    Severity.INFO: ("info", "at-sign", _("for you")),
    Severity.WARNING: ("warn", "triangle-alert", _("warning")),
    Severity.ERROR: ("danger", "circle-alert", _("error")),
}


def title_of(kind: str) -> Promise | str:
    """Return the title of a kind; one that only a newer version knows is its own."""
    return TITLES.get(read_member(NoticeKind, kind), kind)


@dataclass(frozen=True)
class ShownNotice:
    """A notice as pages show it; ``is_new``: its reader has not seen the latest news about it."""

    notice: Notice
    is_new: bool = False

    @cached_property
    def kind(self) -> NoticeKind:
        return read_member(NoticeKind, self.notice.kind)

    @property
    def title(self) -> Promise | str:
        return title_of(self.kind)

    @property
    def text(self) -> str:
        facts = presentation.facts_of(self.notice)
        return str(TEXTS.get(self.kind, _UNKNOWN)) % {name: _write(value) for name, value in facts.items()}

    @property
    def path(self) -> str:
        return presentation.path_of(self.notice) + _QUERIES.get(self.kind, "")

    @property
    def _badge(self) -> tuple[str, str, Promise]:
        severity = read_member(Severity, self.notice.severity)
        return _BADGES.get(severity, _BADGES[Severity.WARNING])

    @property
    def badge(self) -> str:
        return "ok" if self.notice.resolved_at else self._badge[0]

    @property
    def icon(self) -> str:
        return "circle-check" if self.notice.resolved_at else self._badge[1]

    @property
    def label(self) -> Promise:
        return _("resolved") if self.notice.resolved_at else self._badge[2]


def _write(value: object) -> object:
    if isinstance(value, datetime):
        local = to_local(value)
        return f"{local:%Y-%m-%d %H:%M %Z}"
    return number_format(value, force_grouping=True) if isinstance(value, int) else value
