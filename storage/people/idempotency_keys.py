"""Idempotency keys of creation requests, with the result of the first request."""

from datetime import datetime

from django.db import IntegrityError

from storage.models import Account, ApiToken, IdempotencyRecord
from storage.people.api_tokens import IDEMPOTENCY_RETENTION


class ConcurrentRequest(Exception):
    """The same request was made concurrently and finished first."""


def find(token: ApiToken, key: str, now: datetime) -> IdempotencyRecord | None:
    """Return the unexpired record of an idempotency key."""
    records = IdempotencyRecord.objects.filter(token=token)
    records.filter(created_at__lte=now - IDEMPOTENCY_RETENTION).delete()
    return records.filter(key=key).select_related("account").first()


def save(token: ApiToken, key: str, digest: str, account: Account, fingerprint: str = "") -> None:
    """Record a key in the caller's transaction; raises ConcurrentRequest if a concurrent request was faster."""
    try:
        IdempotencyRecord.objects.create(
            token=token, key=key, digest=digest, account=account, fingerprint=fingerprint
        )
    except IntegrityError:
        raise ConcurrentRequest from None
