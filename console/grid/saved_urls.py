"""Saved query strings that are too long for an address; a short key replaces them."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl

from django.http import QueryDict
from django.utils import timezone
from django.utils.crypto import salted_hmac

from console.models import SavedUrl
from storage.accounts import quotas
from storage.core.quotas import SAVED_URLS
from storage.models import Table

NAME: Final = "k"  # in an address
LONGEST: Final = 1800  # bytes of an address; longer ones are saved
_KEPT: Final = timedelta(days=180)  # since the last use
_EXACT_TO: Final = timedelta(days=1)  # precision of the last use, so that reading rarely writes
_KEY: Final = re.compile(r"[0-9a-f]{24}", re.ASCII)

Pairs = Iterable[tuple[str, str]]


def keep(table: Table, query: str) -> SavedUrl:
    """Save a query string, replacing the account's least recently used ones."""
    state, now = _state(table, query), timezone.now()
    key = salted_hmac(__name__, state, algorithm="sha256").hexdigest()[:24]
    saved = SavedUrl(key=key, account_id=table.account_id, state=state, used_at=now)
    SavedUrl.objects.bulk_create(
        [saved], update_conflicts=True, unique_fields=("key",), update_fields=("used_at", "account")
    )
    latest = SavedUrl.objects.filter(account=table.account_id).order_by("-used_at").values("pk")
    SavedUrl.objects.filter(pk__in=latest[quotas.limit(SAVED_URLS) :]).delete()
    return saved


def find(table: Table, key: str) -> SavedUrl | None:
    """Return a saved URL; None if unknown, expired, or of another table."""
    saved = SavedUrl.objects.filter(pk=key).first() if _KEY.fullmatch(key) else None
    if saved is None or not saved.state.startswith(_state(table, "")):
        return None
    now = timezone.now()
    if saved.used_at < now - _EXACT_TO:
        SavedUrl.objects.filter(pk=key).update(used_at=now)
    return saved


def _state(table: Table, query: str) -> str:
    # with the table, so that a key reveals nothing to a user who may only read another table
    return f"{table.pk}?{query}"


def merge_query(saved: SavedUrl, query: QueryDict) -> QueryDict:
    """Return the saved query string, overridden by the address's fields, even empty ones."""
    merged = QueryDict(saved.query, mutable=True)
    for name, values in query.lists():
        merged.setlist(name, values)
    return merged


def fields_beside(saved: SavedUrl, fields: Pairs) -> list[tuple[str, str]]:
    """Return the fields that an address needs beside the key, so that both together stand for ``fields``."""
    mine, theirs = _by_name(parse_qsl(saved.query, keep_blank_values=True)), _by_name(fields)
    return [
        (NAME, saved.key),
        *(
            (name, value)
            for name in {**mine, **theirs}
            if mine.get(name) != theirs.get(name)
            for value in theirs.get(name, [""])
        ),
    ]


def _by_name(fields: Pairs) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in fields:
        found.setdefault(name, []).append(value)
    return found


def tidy(now: datetime) -> None:
    SavedUrl.objects.filter(used_at__lt=now - _KEPT).delete()
