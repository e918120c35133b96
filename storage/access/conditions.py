"""Conditions of notices about expiring SAS tokens and their quota."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q

from storage.access import sas
from storage.accounts.quotas import find_used_up
from storage.core.notices import Found, Look, Severity
from storage.core.quotas import SAS
from storage.domain.sas.known import find_policy
from storage.domain.sas.terms import combine_terms, validity_period
from storage.domain.values.ticks import to_second
from storage.models import Account, RegisteredSas

_DAY: Final = timedelta(days=1)
_SHORTEST_TOKEN: Final = timedelta(days=2)  # one of a shorter lifetime is made again by a program


def find_expiring_sas(look: Look) -> Iterator[Found]:
    expiring = []
    for account, known, policies in sas.expiring(Account.objects.filter(enabled=True), look.now):
        terms = combine_terms(known.token, find_policy(known.token, policies))
        start, expiry = validity_period(terms)
        end = min(filter(None, (_moment(expiry), known.key_ends)), default=None)
        began = max(filter(None, (_moment(start), known.created)), default=None)
        if end is None or (end - began < _SHORTEST_TOKEN if began else not known.is_registered):
            continue
        expiring.append((end, account, known))
    for end, account, known in sorted(expiring, key=lambda it: it[0]):
        is_near = end - look.now <= _DAY
        yield Found(
            account.pk,
            known.fingerprint,
            {"label": known.label or known.fingerprint[:8], "expires_at": end.isoformat()},
            news="1d" if is_near else "",
            severity=Severity.ERROR if is_near else None,
        )


def _moment(ticks: int | None) -> datetime | None:
    return None if ticks is None else to_second(ticks)


def find_quota(look: Look) -> Iterator[Found]:
    unexpired: Any = RegisteredSas.objects.filter(Q(expires_at=None) | Q(expires_at__gt=look.now))
    return find_used_up(SAS, unexpired, look)
