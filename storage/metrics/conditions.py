"""Conditions of notices about errors and slow requests."""

from collections.abc import Iterator
from typing import Final

from storage.core.notices import Found, Look
from storage.domain.requests.outcomes import is_server_failure
from storage.domain.requests.series import PeriodCounts
from storage.metrics.series import MINUTE, read_latest
from storage.models import Account

_MINUTES: Final = 5  # minutes before the current one that are counted too
_FEWEST: Final = 20  # requests that are enough for a share
_SLOW_SHARE: Final = 0.05


def _recent(look: Look) -> Iterator[tuple[int, PeriodCounts]]:
    found = read_latest(look.now - (_MINUTES + 1) * MINUTE)
    known = set(Account.objects.filter(pk__in=found).values_list("pk", flat=True))
    yield from ((pk, it) for pk, it in sorted(found.items()) if pk in known and it.requests >= _FEWEST)


def _is_wrong(status: int) -> bool:
    """Return whether a status is a server failure or a denied permission."""
    return is_server_failure(status) or status in (401, 403)


def find_many_errors(look: Look) -> Iterator[Found]:
    for account_id, recent in _recent(look):
        errors = recent.requests_where(_is_wrong)
        share = 100 * errors / recent.requests
        if share >= look.threshold(account_id):
            facts = {
                "share": round(share),
                "errors": errors,
                "requests": recent.requests,
                "minutes": _MINUTES,
            }
            yield Found(account_id, "", facts)


def find_slow_requests(look: Look) -> Iterator[Found]:
    for account_id, recent in _recent(look):
        milliseconds = 1000 * recent.total().exceeded(_SLOW_SHARE)
        if milliseconds >= look.threshold(account_id):
            yield Found(account_id, "", {"milliseconds": round(milliseconds), "minutes": _MINUTES})
