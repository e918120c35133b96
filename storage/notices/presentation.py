"""Notices as text and JSON for all channels; the console has its own translations."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from storage.core import registry
from storage.core.notices import NoticeKind, Severity
from storage.domain.values.stored import read_member
from storage.models import Notice
from storage.notices.kinds import describe, read_facts


@dataclass(frozen=True, slots=True)
class NoticeView:
    """Notice for display; ``path`` is a page of the console, ``link`` its URL if the server's address is known."""

    id: int
    kind: NoticeKind
    severity: Severity
    account: str  # empty: of the server, or of a user
    subject: str
    text: str
    facts: Mapping[str, Any]
    path: str
    link: str
    opened_at: datetime
    news_at: datetime
    resolved_at: datetime | None


def view(notice: Notice) -> NoticeView:
    kind, account = (
        registry.find_notice_kind(notice.kind),
        "" if notice.account is None else notice.account.name,
    )
    facts = facts_of(notice)
    path = path_of(notice)
    return NoticeView(
        notice.pk,
        kind,
        read_member(Severity, notice.severity),
        account,
        notice.subject,
        describe(kind, facts),
        notice.facts,
        path,
        f"{settings.CONSOLE_URL}{path}" if settings.CONSOLE_URL else path,
        notice.opened_at,
        notice.news_at,
        notice.resolved_at,
    )


def facts_of(notice: Notice) -> dict[str, Any]:
    """Return the values for the sentence of a notice, with times parsed."""
    account = {} if notice.account is None else {"account": notice.account.name}
    return {**account, **read_facts(notice.facts)}


def path_of(notice: Notice) -> str:
    facts = {**facts_of(notice), "subject": notice.subject}
    scope = "" if notice.account is None else f"a/{notice.account.name}/"
    kind = registry.notice_kinds().get(notice.kind)
    return "/ui/notices/" if kind is None else "/ui/" + kind.condition.path.format(scope=scope, **facts)
