"""The conditions of notices: a table of small declarations, each with the query that finds what is so now."""

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, F, Max, Q

from storage.domain.access.roles import Capability
from storage.domain.sas.known import find_policy
from storage.domain.sas.terms import combine_terms, validity_period
from storage.domain.service.jobs import JobStatus
from storage.domain.service.lifetimes import PURGE_DELAY
from storage.domain.service.notices import NoticeKind, Severity
from storage.domain.service.quotas import SAS, SNAPSHOTS, Quota
from storage.domain.service.snapshots import SnapshotReason
from storage.domain.values.names import DEVELOPMENT_ACCOUNT
from storage.domain.values.ticks import to_second
from storage.models import Account, ApiToken, Job, RegisteredSas, Snapshot, Webhook
from storage.operations.access import sas
from storage.operations.accounts import key_dates, quotas
from storage.operations.comments import mentions
from storage.operations.counting.recent import RecentRequests, recent_requests
from storage.operations.health import archive, backups, disk

_DAY: Final = timedelta(days=1)
_TOKEN_SOON: Final = timedelta(days=7)
_SHORTEST_TOKEN: Final = timedelta(days=2)  # one of a shorter lifetime is made again by a program
_SPAN: Final = timedelta(minutes=5)  # of requests that are looked at
_FEWEST: Final = 20  # requests, of which a share means something
_SLOW_SHARE: Final = 0.05
_WEBHOOK_FAILURES: Final = 3


class Unit(StrEnum):
    DAYS = "days"
    PERCENT = "percent"
    MILLISECONDS = "milliseconds"


@dataclass(frozen=True, slots=True)
class Threshold:
    """From which value on a condition is met, as accounts may set it."""

    unit: Unit
    default: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Found:
    """What is so now. ``news``: when it changes, people are told again; ``severity``: if not that of the condition."""

    account_id: int | None = None
    subject: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    news: str = ""
    severity: Severity | None = None
    user_id: int | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """When a condition is looked for, and with which thresholds by account."""

    now: datetime
    default: float
    thresholds: Mapping[int | None, float] = field(default_factory=dict)

    def threshold(self, account_id: int | None) -> float:
        return self.thresholds.get(account_id, self.default)

    @property
    def least_threshold(self) -> float:
        return min([self.default, *self.thresholds.values()])

    @property
    def most_threshold(self) -> float:
        return max([self.default, *self.thresholds.values()])


@dataclass(frozen=True, slots=True)
class Condition:
    """``path``: the page of the console that helps, below /ui/; it is filled with the facts.

    ``capability``: what its readers need in the account; those of the server are for admins. ``calm``: how long it
    must not be found before it is resolved. ``is_local``: it is about the machine of the process that looks.
    """

    kind: NoticeKind
    severity: Severity
    path: str
    find: Callable[[Look], Iterable[Found]]
    capability: Capability = Capability.READ
    threshold: Threshold | None = None
    calm: timedelta = timedelta()
    is_local: bool = False
    is_of_server: bool = False
    is_personal: bool = False

    @property
    def is_of_accounts(self) -> bool:
        return not self.is_of_server and not self.is_personal


# tokens and keys


def _expiring_sas(look: Look) -> Iterator[Found]:
    found = []
    for account, known, policies in sas.expiring(Account.objects.filter(enabled=True), look.now):
        terms = combine_terms(known.token, find_policy(known.token, policies))
        start, expiry = validity_period(terms)
        end = min(filter(None, (_moment(expiry), known.key_ends)), default=None)
        began = max(filter(None, (_moment(start), known.created)), default=None)
        if end is None or (end - began < _SHORTEST_TOKEN if began else not known.is_registered):
            continue
        found.append((end, account, known))
    for end, account, known in sorted(found, key=lambda it: it[0]):
        is_near = end - look.now <= _DAY
        yield Found(
            account.pk,
            known.fingerprint,
            {"label": known.label or known.fingerprint[:8], "expires_at": end.isoformat()},
            news="1d" if is_near else "",
            severity=Severity.ERROR if is_near else None,
        )


def _moment(ticks: int | None) -> datetime | None:
    return None if ticks is None else to_second(ticks)


def _expiring_api_tokens(look: Look) -> Iterator[Found]:
    lasting = Q(expires_at__gte=F("created_at") + 2 * _TOKEN_SOON)
    soon = ApiToken.objects.filter(
        lasting, expires_at__gt=look.now, expires_at__lte=look.now + _TOKEN_SOON, revoked_at=None
    )
    for token in soon.filter(user__is_active=True).order_by("expires_at"):
        assert token.expires_at is not None
        is_near = token.expires_at - look.now <= _DAY
        yield Found(
            subject=str(token.pk),
            facts={"token": token.name, "expires_at": token.expires_at.isoformat()},
            news="1d" if is_near else "",
            severity=Severity.ERROR if is_near else None,
            user_id=token.user_id,
        )


def _old_keys(look: Look) -> Iterator[Found]:
    for account, number, since in key_dates.older_than(look.now - timedelta(days=look.least_threshold)):
        age = (look.now - since).days
        # that of the development account is public and never rotated
        if age >= look.threshold(account.pk) and account.name != DEVELOPMENT_ACCOUNT:
            yield Found(account.pk, f"key{number}", {"key": f"key{number}", "days": age})


# jobs, lifetimes and quotas


def _failed_jobs(look: Look) -> Iterator[Found]:
    # until the user who started it has seen it
    failed = Job.objects.filter(status=JobStatus.FAILED, seen_at=None, ended_at__lte=look.now)
    grouped = failed.values("account_id", "kind").annotate(number=Count("pk"), last=Max("pk"))
    for it in grouped.order_by("account_id", "kind"):
        facts = {"job": it["last"], "job_kind": it["kind"], "number": it["number"]}
        yield Found(it["account_id"], it["kind"], facts, news=str(it["last"]))


def _expiring_accounts(look: Look) -> Iterator[Found]:
    until = look.now + timedelta(days=look.most_threshold)
    for account in Account.objects.filter(expires_at__lte=until, frozen_at=None).order_by("expires_at"):
        assert account.expires_at is not None
        warned_for = timedelta(days=look.threshold(account.pk))
        # an account of a few hours, such as one of a test, is meant to expire
        is_lasting = account.expires_at - account.created_at >= 2 * warned_for
        if is_lasting and account.expires_at - look.now <= warned_for:
            yield Found(account.pk, "", {"expires_at": account.expires_at.isoformat()})


def _accounts_to_be_deleted(look: Look) -> Iterator[Found]:
    for account in Account.objects.exclude(frozen_at=None).order_by("frozen_at"):
        is_lasting = account.frozen_at and account.frozen_at - account.created_at >= 2 * PURGE_DELAY
        if account.purged_at is not None and is_lasting:
            yield Found(account.pk, "", {"deleted_at": account.purged_at.isoformat()})


def _quota_used(quota: Quota, counted: Callable[[datetime], Any]) -> Callable[[Look], Iterator[Found]]:
    def find(look: Look) -> Iterator[Found]:
        used = dict(counted(look.now).values_list("account_id").annotate(Count("pk")).order_by("account_id"))
        for account in Account.objects.filter(pk__in=used).order_by("pk"):
            most = quotas.limit(quota, account)
            if used[account.pk] >= most * look.threshold(account.pk) / 100:
                is_full = used[account.pk] >= most
                yield Found(
                    account.pk,
                    "",
                    {"used": used[account.pk], "most": most},
                    news="full" if is_full else "",
                    severity=Severity.ERROR if is_full else None,
                )

    return find


def _unexpired_sas(now: datetime) -> Any:
    return RegisteredSas.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now))


def _taken_snapshots(now: datetime) -> Any:
    return Snapshot.objects.filter(reason=SnapshotReason.USER)


# requests and webhooks


def _recent(look: Look) -> Iterator[tuple[int, RecentRequests]]:
    found = recent_requests(look.now, _SPAN)
    known = set(Account.objects.filter(pk__in=found).values_list("pk", flat=True))
    yield from ((pk, it) for pk, it in sorted(found.items()) if pk in known and it.requests >= _FEWEST)


def _many_errors(look: Look) -> Iterator[Found]:
    for account_id, recent in _recent(look):
        if recent.share_wrong >= look.threshold(account_id):
            facts = {
                "share": round(recent.share_wrong),
                "errors": recent.failed + recent.refused,
                "requests": recent.requests,
                "minutes": _SPAN // timedelta(minutes=1),
            }
            yield Found(account_id, "", facts)


def _slow_requests(look: Look) -> Iterator[Found]:
    for account_id, recent in _recent(look):
        milliseconds = 1000 * recent.exceeded(_SLOW_SHARE)
        if milliseconds >= look.threshold(account_id):
            facts = {"milliseconds": round(milliseconds), "minutes": _SPAN // timedelta(minutes=1)}
            yield Found(account_id, "", facts)


def _failing_webhooks(look: Look) -> Iterator[Found]:
    failing = Webhook.objects.filter(enabled=True, failures__gte=_WEBHOOK_FAILURES).exclude(failed_at=None)
    for webhook in failing.order_by("failed_at"):
        assert webhook.failed_at is not None
        facts = {
            "webhook": webhook.name,
            "failed_at": webhook.failed_at.isoformat(),
            "attempts": webhook.failures,
        }
        yield Found(webhook.account_id, str(webhook.pk), facts)


def _mentions(look: Look) -> Iterator[Found]:
    for mention in mentions.not_seen(look.now):
        thread = mention.comment.thread
        facts = {"author": mention.comment.author_name, "about": mentions.describe(thread)}
        yield Found(
            thread.account_id, str(thread.pk), facts, news=str(mention.comment_id), user_id=mention.user_id
        )


# the machine


def machine() -> str:
    """Name this machine, if several can serve the database."""
    return socket.gethostname()[:128] if settings.OPTIONS.database_url else ""


def _overdue_backups(look: Look) -> Iterator[Found]:
    state = backups.state(look.now)
    is_old = state.next_at is None and state.last is not None and look.now - state.last.made_at > backups.OLD
    if state.last is not None and (state.is_overdue or is_old):
        yield Found(None, machine(), {"made_at": state.last.made_at.isoformat()})


def _failed_backups(look: Look) -> Iterator[Found]:
    state = backups.state(look.now)
    if state.is_failing and state.failure is not None:
        at = state.failure.failed_at.isoformat()
        yield Found(None, machine(), {"failed_at": at}, news=at)


def _missing_backups(look: Look) -> Iterator[Found]:
    if archive.summary() is None and backups.is_missing(backups.state(look.now)):
        yield Found(None, machine())


def _failing_archive(look: Look) -> Iterator[Found]:
    found = archive.summary()
    # without a base backup, and with a gap, the server itself makes one
    passing = {archive.Problem.NO_BASE, archive.Problem.INTERRUPTED}
    if found is not None and any(it.problem not in passing for it in found.problems):
        yield Found(None, machine())


def _full_disk(look: Look) -> Iterator[Found]:
    space = disk.space_of(settings.OPTIONS.data)
    if space.is_low and not settings.OPTIONS.database_url:
        severity = Severity.ERROR if space.is_full else None
        yield Found(
            None, machine(), {"free": space.free >> 20}, "full" if space.is_full else "", severity=severity
        )


def _server(kind: NoticeKind, severity: Severity, find: Callable[[Look], Iterable[Found]]) -> Condition:
    return Condition(kind, severity, "backups/", find, is_local=True, is_of_server=True)


_MANAGED: Final = Capability.MANAGE_ACCESS
_WARNING, _ERROR = Severity.WARNING, Severity.ERROR

CONDITIONS: Final[Mapping[NoticeKind, Condition]] = {
    it.kind: it
    for it in (
        Condition(NoticeKind.SAS_EXPIRING, _WARNING, "a/{account}/sas/{subject}/", _expiring_sas, _MANAGED),
        Condition(
            NoticeKind.API_TOKEN_EXPIRING, _WARNING, "me/tokens/", _expiring_api_tokens, is_personal=True
        ),
        Condition(
            NoticeKind.KEY_OLD,
            _WARNING,
            "a/{account}/keys/",
            _old_keys,
            _MANAGED,
            Threshold(Unit.DAYS, 365, 1, 3650),
        ),
        Condition(NoticeKind.JOB_FAILED, _ERROR, "jobs/{job}/", _failed_jobs),
        Condition(
            NoticeKind.ACCOUNT_EXPIRING,
            _WARNING,
            "a/{account}/overview/",
            _expiring_accounts,
            threshold=Threshold(Unit.DAYS, 1, 1, 90),
        ),
        Condition(NoticeKind.ACCOUNT_DELETION, _ERROR, "a/{account}/overview/", _accounts_to_be_deleted),
        Condition(
            NoticeKind.SNAPSHOT_QUOTA,
            _WARNING,
            "a/{account}/snapshots/",
            _quota_used(SNAPSHOTS, _taken_snapshots),
            threshold=Threshold(Unit.PERCENT, 90, 1, 100),
        ),
        Condition(
            NoticeKind.SAS_QUOTA,
            _WARNING,
            "a/{account}/sas/",
            _quota_used(SAS, _unexpired_sas),
            _MANAGED,
            Threshold(Unit.PERCENT, 90, 1, 100),
        ),
        Condition(
            NoticeKind.ERRORS_HIGH,
            _ERROR,
            "a/{account}/requests/",
            _many_errors,
            threshold=Threshold(Unit.PERCENT, 10, 1, 100),
            calm=timedelta(minutes=10),
        ),
        Condition(
            NoticeKind.LATENCY_HIGH,
            _WARNING,
            "a/{account}/requests/",
            _slow_requests,
            threshold=Threshold(Unit.MILLISECONDS, 2000, 1, 60_000),
            calm=timedelta(minutes=10),
        ),
        Condition(
            NoticeKind.WEBHOOK_FAILING, _ERROR, "{scope}notices/settings/", _failing_webhooks, _MANAGED
        ),
        Condition(
            NoticeKind.COMMENT_MENTION,
            Severity.INFO,
            "a/{account}/comments/{subject}/",
            _mentions,
            is_personal=True,
        ),
        _server(NoticeKind.BACKUP_OVERDUE, _ERROR, _overdue_backups),
        _server(NoticeKind.BACKUP_FAILED, _ERROR, _failed_backups),
        _server(NoticeKind.BACKUP_MISSING, _WARNING, _missing_backups),
        _server(NoticeKind.ARCHIVE_FAILING, _ERROR, _failing_archive),
        Condition(NoticeKind.DISK_LOW, _WARNING, "about/", _full_disk, is_local=True, is_of_server=True),
    )
}
