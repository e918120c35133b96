"""Condition of the notice about the disk."""

from collections.abc import Iterator

from django.conf import settings

from storage.core.notices import Found, Look, Severity
from storage.health import disk
from storage.health.machine import machine


def find_full_disk(look: Look) -> Iterator[Found]:
    space = disk.space_of(settings.OPTIONS.data)
    if space.is_low and not settings.OPTIONS.database_url:
        severity = Severity.ERROR if space.is_full else None
        yield Found(
            None, machine(), {"free": space.free >> 20}, "full" if space.is_full else "", severity=severity
        )
