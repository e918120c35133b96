"""Condition of the notice about users' own API tokens that expire soon."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.db.models import F, Q

from storage.core.notices import Found, Look, Severity
from storage.models import ApiToken

_DAY: Final = timedelta(days=1)
_TOKEN_SOON: Final = timedelta(days=7)


def find_expiring_api_tokens(look: Look) -> Iterator[Found]:
    lasting = Q(expires_at__gte=F("created_at") + 2 * _TOKEN_SOON)
    soon = ApiToken.objects.filter(
        lasting, expires_at__gt=look.now, expires_at__lte=look.now + _TOKEN_SOON, revoked_at=None
    )
    for token in soon.filter(user__is_active=True).order_by("expires_at"):
        assert token.expires_at is not None
        is_near = token.expires_at - look.now <= _DAY
        yield Found(
            subject=str(token.pk),
            facts={"token": token.name, "expires_at": token.expires_at.isoformat()},
            news="1d" if is_near else "",
            severity=Severity.ERROR if is_near else None,
            user_id=token.user_id,
        )
