"""Notice kinds with their facts and English sentences."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.utils.module_loading import import_string

from storage.core import registry
from storage.core.notices import Finder, Found, Look, NoticeKind
from storage.models import Account

NEWS_LENGTH: Final = 64
RETENTION_DAYS: Final = 90  # days that resolved notices and ended deliveries are kept
_INSTANT: Final = re.compile(r"_at$")


class NoticeEvent(StrEnum):
    """Event of a notice as webhooks receive it. The values are stored."""

    OPENED = "opened"
    CHANGED = "changed"  # there is news about a condition that is known already
    RESOLVED = "resolved"
    TEST = "test"  # a user wanted to see whether a webhook works


def kinds_of(account: Account | None) -> list[NoticeKind]:
    """Return the notice kinds with rules for an account, or for the server."""
    kinds = registry.notice_kinds().values()
    return [
        kind
        for kind in kinds
        if (kind.condition.is_of_server if account is None else kind.condition.is_of_accounts)
    ]


def kinds_of_accounts() -> list[NoticeKind]:
    return [kind for kind in registry.notice_kinds().values() if kind.condition.is_of_accounts]


def find_cases(kind: NoticeKind, look: Look) -> Iterable[Found]:
    """Return the current cases of a notice kind."""
    finder: Finder = import_string(kind.condition.find)
    return finder(look)


def read_facts(facts: Mapping[str, object]) -> dict[str, object]:
    """Return facts with instants parsed to datetimes."""
    return {
        name: datetime.fromisoformat(value) if _INSTANT.search(name) and isinstance(value, str) else value
        for name, value in facts.items()
    }


def describe(kind: NoticeKind, facts: Mapping[str, object]) -> str:
    """Return the English sentence of a notice, with times in UTC."""
    written = {
        name: f"{value:%Y-%m-%d %H:%M} UTC" if isinstance(value, datetime) else value
        for name, value in read_facts(facts).items()
    }
    return kind.condition.text % written
