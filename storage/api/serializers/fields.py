"""Fields that take only what they are declared as, and serializers that take nothing else than their fields."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.http import QueryDict
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.api.problems import WrongParameters
from storage.domain.service import lifetimes
from storage.domain.service.lifetimes import LifetimeError

_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


class Strict(serializers.Serializer[Any]):
    """A body; what it does not know, it refuses."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = {name for name, field in self.fields.items() if not field.read_only}
            unknown = {name: ["There is no such member."] for name in data if name not in known}
            if unknown:
                raise ValidationError(unknown)
        return super().to_internal_value(data)


class Parameters(Strict):
    """What stands behind the question mark of an address."""

    @classmethod
    def read(cls, given: QueryDict) -> dict[str, Any]:
        serializer = cls(data=given)
        if not serializer.is_valid():
            raise WrongParameters(serializer.errors)
        found: dict[str, Any] = serializer.validated_data
        return found


class Text(serializers.CharField):
    """A string, not a number that could be written as one; as it was sent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class Flag(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if data is True or data is False:
            return bool(data)
        return bool(self.fail("invalid", input=str(data)[:64]))


class Number(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return int(super().to_internal_value(data))


class Instant(serializers.DateTimeField):
    """A time with its zone (RFC 3339), answered in UTC."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default_timezone=UTC, **options)

    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str) or not _INSTANT.fullmatch(value):
            self.fail("invalid", format="2026-11-30T18:00:00Z")
        try:
            found = datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail("invalid", format="2026-11-30T18:00:00Z")
        if not 1970 <= found.year <= 9998:
            self.fail("overflow")
        return found


@extend_schema_field({"type": "string", "pattern": "^[0-9]{1,6}[mhdw]$"})
class Lifetime(Text):
    """`90m`, `8h`, `2d`, `1w`."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return lifetimes.read_lifetime(super().to_internal_value(data))
        except LifetimeError as error:
            raise ValidationError(str(error)) from None


class Choice(serializers.ChoiceField):
    """One of some strings; numbers that look like one are none."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=str(data)[:64])
        return super().to_internal_value(data)


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class TextByName(serializers.DictField):
    child = Text(allow_blank=True, max_length=255)


def end_of(data: Mapping[str, Any], now: datetime) -> datetime | None:
    """Of `ttl` and `expires_at`, of which only one may be said."""
    lifetime: timedelta | None = data.get("ttl")
    end: datetime | None = data.get("expires_at")
    if lifetime is not None and end is not None:
        raise ValidationError({"ttl": ["Say either ttl or expires_at."]})
    if lifetime is not None:
        return now + lifetime
    if end is not None and not now < end <= now + lifetimes.LONGEST:
        raise ValidationError({"expires_at": ["This is not within the next 366 days."]})
    return end
