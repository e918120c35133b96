"""Short links: one per address of an account."""

import hashlib
import hmac
import re
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl, unquote

from django.conf import settings
from django.utils import timezone

from storage.accounts import quotas
from storage.core.quotas import LINKS
from storage.domain.refusals import Reason, Refused
from storage.models import Account, ShortLink

LONGEST: Final = 6000  # characters of an address, which a browser is redirected to
RETENTION_DAYS: Final = 180  # since the last use
_EXACT_TO: Final = timedelta(days=1)  # precision of the last use, so that opening rarely writes
_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"  # without characters that look alike
_LENGTH: Final = 12  # characters out of 31: 59 bits, which cannot be guessed
_KEY: Final = re.compile(f"[{_ALPHABET}]{{{_LENGTH}}}", re.ASCII)
_SECRET_NAMES: Final = frozenset({"sig", "signature", "token", "secret", "password", "key1", "key2", "code"})
# in a value, such as that of a filter
_SECRET: Final = re.compile(
    r"[?&;]sig=|sharedaccesssignature|accountkey=|\btbl_[0-9a-z]{36}|\bbearer\s+\S{16}", re.IGNORECASE
)


class LinkRefused(Refused):
    """An address cannot have a short link."""


def keep(account: Account, address: str) -> ShortLink:
    """Store an address below an account and return its link, which is the same for equal addresses.

    Raises LinkRefused. Beyond the quota, the least recently used links are deleted.
    """
    _check(address)
    now = timezone.now()
    link = ShortLink(
        key=_key(account, address), account=account, address=address, created_at=now, used_at=now
    )
    ShortLink.objects.bulk_create(
        [link], update_conflicts=True, unique_fields=("key",), update_fields=("used_at",)
    )
    latest = ShortLink.objects.filter(account=account).order_by("-used_at", "pk").values("pk")
    ShortLink.objects.filter(pk__in=latest[quotas.limit(LINKS) :]).delete()
    return link


def find(key: str) -> ShortLink | None:
    """Return a link with its account; None if it is unknown or expired."""
    links = ShortLink.objects.select_related("account").filter(pk=key) if _KEY.fullmatch(key) else None
    link = None if links is None else links.first()
    if link is None:
        return None
    now = timezone.now()
    if link.used_at < now - timedelta(days=RETENTION_DAYS):
        return None
    if link.used_at < now - _EXACT_TO:
        ShortLink.objects.filter(pk=key).update(used_at=now)
    return link


def _key(account: Account, address: str) -> str:
    secret = hmac.digest(settings.SERVER_SECRET or b"", b"short links", hashlib.sha256)
    number = int.from_bytes(hmac.digest(secret, f"{account.pk}/{address}".encode(), hashlib.sha256))
    return "".join(_ALPHABET[number // len(_ALPHABET) ** place % len(_ALPHABET)] for place in range(_LENGTH))


def _check(address: str) -> None:
    if len(address) > LONGEST:
        raise LinkRefused(Reason.LINK_TOO_LONG, most=LONGEST)
    path, _, query = address.partition("?")
    fields = parse_qsl(query, keep_blank_values=True)
    names = {name.lower() for name, _value in fields}
    texts = (unquote(path), *(value for _name, value in fields))
    if names & _SECRET_NAMES or any(map(_SECRET.search, texts)):
        raise LinkRefused(Reason.LINK_HOLDS_SECRET)


def tidy(now: datetime) -> None:
    ShortLink.objects.filter(used_at__lt=now - timedelta(days=RETENTION_DAYS)).delete()
