"""Waiting times after too many attempts; allauth counts them in a shared cache."""

import math
import time

from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import ngettext

from console.site.allauth_parts import ratelimit

FAILED = "login_failed"
ACTIONS = ("login", "reauthenticate", "change_password")


def refuse_if_limited(request: HttpRequest, key: str) -> None:
    """Raise a ValidationError after too many failed attempts for this key or from this address."""
    seconds = seconds_to_wait(request, FAILED, key)
    if seconds:
        raise ValidationError(wait_message(seconds), code="limited", params={"seconds": seconds})


def wait_message(seconds: int) -> str:
    return ngettext(
        "Too many attempts. Try again in %(seconds)d second.",
        "Too many attempts. Try again in %(seconds)d seconds.",
        seconds,
    ) % {"seconds": seconds}


def seconds_to_wait(request: HttpRequest, action: str, key: str = "", app: str = "allauth.account") -> int:
    """Return the seconds until the next allowed attempt; 0 if one is allowed already."""
    now = time.time()
    longest = 0.0
    for rate in ratelimit.get_rates(app=app, action=action):
        if rate.per == "user" and not request.user.is_authenticated:
            continue
        name = ratelimit.get_cache_key(request, app=app, action=action, rate=rate, key=key)
        counted = [at for at in cache.get(name, []) if at > now - rate.duration]  # the newest first
        if len(counted) >= rate.amount:
            longest = max(longest, counted[rate.amount - 1] + rate.duration - now)
    return math.ceil(longest)


def longest_wait(request: HttpRequest) -> int:
    """Return the longest wait of rate-limited actions."""
    found = [seconds_to_wait(request, action) for action in ACTIONS]
    return max(*found, seconds_to_wait(request, "webauthn_login", app="allauth.mfa"))
