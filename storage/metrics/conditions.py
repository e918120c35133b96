"""Find what notices tell about many errors and slow requests."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from storage.core.notices import Found, Look
from storage.metrics.recent import RecentRequests, recent_requests
from storage.models import Account

_SPAN: Final = timedelta(minutes=5)  # of requests that are looked at
_FEWEST: Final = 20  # requests, of which a share means something
_SLOW_SHARE: Final = 0.05


def _recent(look: Look) -> Iterator[tuple[int, RecentRequests]]:
    found = recent_requests(look.now, _SPAN)
    known = set(Account.objects.filter(pk__in=found).values_list("pk", flat=True))
    yield from ((pk, it) for pk, it in sorted(found.items()) if pk in known and it.requests >= _FEWEST)


def find_many_errors(look: Look) -> Iterator[Found]:
    for account_id, recent in _recent(look):
        if recent.share_wrong >= look.threshold(account_id):
            facts = {
                "share": round(recent.share_wrong),
                "errors": recent.failed + recent.refused,
                "requests": recent.requests,
                "minutes": _SPAN // timedelta(minutes=1),
            }
            yield Found(account_id, "", facts)


def find_slow_requests(look: Look) -> Iterator[Found]:
    for account_id, recent in _recent(look):
        milliseconds = 1000 * recent.exceeded(_SLOW_SHARE)
        if milliseconds >= look.threshold(account_id):
            facts = {"milliseconds": round(milliseconds), "minutes": _SPAN // timedelta(minutes=1)}
            yield Found(account_id, "", facts)
