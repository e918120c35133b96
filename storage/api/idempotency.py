"""Requests that make something, and may come twice: the second is answered with what the first has made.

Nothing secret is kept of either; https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
"""

import hashlib
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

import orjson
from django.db import IntegrityError
from rest_framework.request import Request

from storage.api import problems
from storage.api.problems import Problem
from storage.models import Account, ApiToken, IdempotencyRecord
from storage.operations.api_tokens import IDEMPOTENCY_RETENTION

T = TypeVar("T")
HEADER: Final = "Idempotency-Key"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


def digest_of(request: Request) -> str:
    """Of what a request says, however its JSON is spaced and ordered."""
    said = [request.method, request.path, request.data]
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_key(request: Request) -> str:
    key: str = request.headers.get(HEADER, "")
    if key and not _KEY.fullmatch(key):
        raise Problem(problems.INVALID, f"{HEADER} is 1 to 255 printable ASCII characters without spaces.")
    return key


def find(token: ApiToken, key: str, digest: str, now: datetime) -> IdempotencyRecord | None:
    """What was made by this key within a day; raises when it was by another request."""
    IdempotencyRecord.objects.filter(token=token, created_at__lte=now - IDEMPOTENCY_RETENTION).delete()
    found = IdempotencyRecord.objects.filter(token=token, key=key).select_related("account").first()
    if found is not None and found.digest != digest:
        raise Problem(problems.KEY_REUSED)
    return found


def keep(token: ApiToken, key: str, digest: str, account: Account, fingerprint: str = "") -> None:
    """In the transaction of what is made: of two at once, the second fails with AtOnce and nothing done."""
    try:
        IdempotencyRecord.objects.create(
            token=token, key=key, digest=digest, account=account, fingerprint=fingerprint
        )
    except IntegrityError:
        raise AtOnce from None


class AtOnce(Exception):
    """The same request came at the same time, and was quicker."""


def once(attempt: Callable[[], T]) -> T:
    """Again, when the same request was quicker: it then finds what that one made."""
    try:
        return attempt()
    except AtOnce:
        return attempt()
