"""Readers of notices: what they see, have seen and have muted, and their e-mail addresses."""

import hashlib
import hmac
import secrets
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from storage.core import registry
from storage.domain.access.roles import Capability, roles_with
from storage.domain.refusals import Reason, Refused
from storage.models import Account, Membership, Notice, NoticeMute, NoticeReader
from storage.people import members
from storage.people.members import Person

_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)  # PostgreSQL stores years that Python cannot read
_MOST_MUTES: Final = 200  # muted items of a user
_CODE_LIFETIME: Final = timedelta(hours=1)
_CODE_DIGITS: Final = 8
_MOST_ATTEMPTS: Final = 5


class MuteError(Refused):
    """The notice cannot be muted."""


# visible notices


def visible(user: Person) -> QuerySet[Notice]:
    """Select the notices that a user may see, latest news first."""
    shown = Q(user_id=user.pk)
    if user.is_admin:
        shown |= Q(user=None, account=None)
    for capability, kinds in _kinds_by_capability().items():
        accounts = members.visible_accounts(user, capability).order_by().values("pk")
        shown |= Q(user=None, kind__in=kinds, account__in=accounts)
    notices = Notice.objects.filter(shown, kind__in=registry.notice_kinds())
    return notices.select_related("account").order_by("-news_at", "-pk")


def _kinds_by_capability() -> dict[Capability, list[str]]:
    by_capability: defaultdict[Capability, list[str]] = defaultdict(list)
    for kind in registry.notice_kinds().values():
        if not kind.condition.is_personal:
            by_capability[kind.condition.capability].append(kind)
    return by_capability


def current(user: Person) -> QuerySet[Notice]:
    """Select the open notices that a user has not muted."""
    return visible(user).filter(~Exists(_muting(user.pk)), resolved_at=None)


def open_notices(account: Account | None = None) -> QuerySet[Notice]:
    """Select all open notices, or those of an account, oldest first."""
    notices = Notice.objects.filter(resolved_at=None, kind__in=registry.notice_kinds()).select_related(
        "account"
    )
    return (notices if account is None else notices.filter(account=account)).order_by("pk")


def current_with_news(user: Person, limit: int) -> list[tuple[Notice, bool]]:
    """Return the current notices, latest news first, each with whether its news is unseen."""
    if not Notice.objects.filter(resolved_at=None).exists():
        return []  # mostly; to select whose they are takes ten times as long
    notices = current(user).annotate(is_new=~_seen(user.pk))
    return [(it, it.is_new) for it in notices[:limit]]


def unseen(user: Person) -> QuerySet[Notice]:
    """Select the current notices with news that a user has not seen."""
    return current(user).filter(~_seen(user.pk))


def _seen(user_id: int) -> Exists:
    """Return the condition that a user has seen a notice's latest news."""
    return Exists(NoticeReader.objects.filter(user_id=user_id, seen_at__gte=OuterRef("news_at")))


def mark_seen(user: Person, *, upto: datetime) -> None:
    """Record that a user has seen the news until a time, unless a later time is recorded."""
    NoticeReader.objects.get_or_create(user_id=user.pk)
    is_earlier = Q(seen_at=None) | Q(seen_at__lt=upto)
    seen_at = max(_EARLIEST, min(upto, timezone.now()))
    NoticeReader.objects.filter(is_earlier, user_id=user.pk).update(seen_at=seen_at)


# muted notices


def mutes(user: Person) -> list[NoticeMute]:
    return list(NoticeMute.objects.filter(user_id=user.pk).select_related("account").order_by("pk"))


def mute(
    user: Person, *, account: Account | None = None, kind: str = "", subject: str | None = None
) -> NoticeMute:
    """Mute notices for a user that match all given fields, including e-mail; raises MuteError."""
    if kind and kind not in registry.notice_kinds():
        raise MuteError(Reason.NO_NOTICE_KIND, kind=kind)
    if not kind and account is None:
        raise MuteError(Reason.MUTES_NOTHING)
    if NoticeMute.objects.filter(user_id=user.pk).count() >= _MOST_MUTES:
        raise MuteError(Reason.TOO_MANY_MUTES, most=_MOST_MUTES)
    muting, _ = NoticeMute.objects.get_or_create(
        user_id=user.pk, account=account, kind=kind, subject=None if subject is None else subject[:128]
    )
    return muting


def unmute(user: Person, pk: int) -> bool:
    """Remove a mute; return whether the user had it."""
    return bool(NoticeMute.objects.filter(user_id=user.pk, pk=pk).delete()[0])


def _muting(user_id: int) -> QuerySet[NoticeMute]:
    """Select a user's mutes that match the notice of the outer query."""
    of_account = Q(account=None) | Q(account=OuterRef("account"))
    of_kind = Q(kind="") | Q(kind=OuterRef("kind"))
    of_subject = Q(subject=None) | Q(subject=OuterRef("subject"))
    return NoticeMute.objects.filter(of_account, of_kind, of_subject, user_id=user_id)


# e-mail


def to_mail(notice: Notice) -> list[int]:
    """Return the users to e-mail about a notice: with a confirmed address, access to it, and no mute."""
    recipients = NoticeReader.objects.exclude(confirmed_at=None).filter(user__is_active=True)
    if notice.user_id is not None:
        recipients = recipients.filter(user=notice.user_id)
    else:
        kind = registry.notice_kinds().get(notice.kind)
        if kind is None:
            return []  # a kind of a newer version, whose servers send it
        roles = roles_with(kind.condition.capability)
        own: QuerySet[Any, Any] = Membership.objects.filter(account=notice.account_id, role__in=roles)
        is_member = Q(user__in=own.values("user_id")) if notice.account_id is not None else Q(pk__in=[])
        recipients = recipients.filter(is_member | Q(user__is_admin=True))
    muting = Q(account=None) | Q(account=notice.account_id)
    of_kind = Q(kind="") | Q(kind=notice.kind)
    of_subject = Q(subject=None) | Q(subject=notice.subject)
    muted = NoticeMute.objects.filter(muting, of_kind, of_subject)
    return list(recipients.exclude(user__in=muted.values("user_id")).values_list("user_id", flat=True))


def reader_of(user: Person) -> NoticeReader:
    return NoticeReader.objects.filter(user_id=user.pk).first() or NoticeReader(user_id=user.pk)


def confirmed_address(user_id: int) -> str:
    """Return a user's confirmed e-mail address; empty without one, or if the user is disabled."""
    found = NoticeReader.objects.exclude(confirmed_at=None).filter(user_id=user_id, user__is_active=True)
    return found.values_list("address", flat=True).first() or ""


@transaction.atomic
def set_address(user: Person, address: str) -> str:
    """Store an unconfirmed address, and return the confirmation code to send to it."""
    code = "".join(secrets.choice("0123456789") for _ in range(_CODE_DIGITS))
    NoticeReader.objects.update_or_create(
        user_id=user.pk,
        defaults={
            "address": address,
            "confirmed_at": None,
            "code_digest": _digest(user, code),
            "code_expires_at": timezone.now() + _CODE_LIFETIME,
            "code_attempts": 0,
        },
    )
    return code


@transaction.atomic
def confirm_address(user: Person, code: str) -> bool:
    """Confirm the address with the code sent to it; the number of attempts is limited."""
    reader = NoticeReader.objects.select_for_update().filter(user_id=user.pk, confirmed_at=None).first()
    now = timezone.now()
    if reader is None or reader.code_expires_at is None or reader.code_expires_at <= now:
        return False
    if reader.code_attempts >= _MOST_ATTEMPTS:
        return False
    reader.code_attempts += 1
    is_right = hmac.compare_digest(reader.code_digest, _digest(user, code.strip()))
    if is_right:
        reader.confirmed_at, reader.code_expires_at, reader.code_digest = now, None, ""
    reader.save()
    return is_right


def remove_address(user: Person) -> None:
    NoticeReader.objects.filter(user_id=user.pk).update(
        address="", confirmed_at=None, code_expires_at=None, code_digest=""
    )


def _digest(user: Person, code: str) -> str:
    return hashlib.sha256(f"{user.pk}:{code}".encode()).hexdigest()
