"""Idempotency of creation requests: a retry gets the result of the first request."""

import hashlib
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

import orjson
from rest_framework.request import Request

from storage.models import ApiToken, IdempotencyRecord
from storage.people import idempotency_keys
from storage.people.idempotency_keys import ConcurrentRequest
from storage.rest import problems
from storage.rest.problems import Problem

T = TypeVar("T")
HEADER: Final = "Idempotency-Key"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


def request_digest(request: Request) -> str:
    """Return a digest of the request's content, independent of member order and whitespace."""
    content = [request.method, request.path, request.data]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def upload_digest(request: Request, size: int) -> str:
    """Return a digest of an upload request, before its body arrives."""
    content = [request.method, request.path, sorted(request.query_params.lists()), size]
    return hashlib.sha256(orjson.dumps(content)).hexdigest()


def read_key(request: Request) -> str:
    key: str = request.headers.get(HEADER, "")
    if key and not _KEY.fullmatch(key):
        detail = f"{HEADER} must be 1 to 255 printable ASCII characters without spaces."
        raise Problem(problems.INVALID, detail)
    return key


def find(token: ApiToken, key: str, digest: str, now: datetime) -> IdempotencyRecord | None:
    """Return the unexpired record of a key; raise a Problem if another request used the key."""
    record = idempotency_keys.find(token, key, now)
    if record is not None and record.digest != digest:
        raise Problem(problems.KEY_REUSED)
    return record


def retry_concurrent(attempt: Callable[[], T]) -> T:
    """Retry once after a concurrent request with the same key: the second attempt finds its record."""
    try:
        return attempt()
    except ConcurrentRequest:
        return attempt()
