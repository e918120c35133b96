"""Creation requests that may arrive twice: the second is answered with what the first created.

No secret of either is kept. https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
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


def request_digest(request: Request) -> str:
    """Return a digest of what a request asks for, independent of the order and spacing of its JSON."""
    content = [request.method, request.path, request.data]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_key(request: Request) -> str:
    key: str = request.headers.get(HEADER, "")
    if key and not _KEY.fullmatch(key):
        detail = f"{HEADER} must be 1 to 255 printable ASCII characters without spaces."
        raise Problem(problems.INVALID, detail)
    return key


def find(token: ApiToken, key: str, digest: str, now: datetime) -> IdempotencyRecord | None:
    """Return the record of a key that is still valid; raise a Problem when another request used the key."""
    IdempotencyRecord.objects.filter(token=token, created_at__lte=now - IDEMPOTENCY_RETENTION).delete()
    found = IdempotencyRecord.objects.filter(token=token, key=key).select_related("account").first()
    if found is not None and found.digest != digest:
        raise Problem(problems.KEY_REUSED)
    return found


def save(token: ApiToken, key: str, digest: str, account: Account, fingerprint: str = "") -> None:
    """Record a key in the caller's transaction; raise ConcurrentRequest when the same request was faster."""
    try:
        IdempotencyRecord.objects.create(
            token=token, key=key, digest=digest, account=account, fingerprint=fingerprint
        )
    except IntegrityError:
        raise ConcurrentRequest from None


class ConcurrentRequest(Exception):
    """The same request was made at the same time and finished first."""


def retry_concurrent(attempt: Callable[[], T]) -> T:
    """Try again when the same request was faster: the second attempt finds what that one created."""
    try:
        return attempt()
    except ConcurrentRequest:
        return attempt()
