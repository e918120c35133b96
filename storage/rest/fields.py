"""Serializer fields without type coercion, and serializers that refuse unknown fields."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

from django.http import QueryDict
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from storage.core import lifetimes
from storage.core.lifetimes import LifetimeError
from storage.domain.access.roles import Role, name_role
from storage.rest.exceptions import MOST_ERRORS, InvalidParameters

ROLES: Final = [role.name.lower() for role in Role]
_INTEGER: Final = re.compile("-?[0-9]+")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


class StrictSerializer(serializers.Serializer[Any]):
    """Request body that refuses unknown members."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = {name for name, field in self.fields.items() if not field.read_only}
            unknown = islice((name for name in data if name not in known), MOST_ERRORS)
            errors = {name: ["Unknown member."] for name in unknown}
            if errors:
                raise ValidationError(errors)
        return super().to_internal_value(data)


class QueryParameters(StrictSerializer):
    """The parameters of the query string."""

    @classmethod
    def read(cls, given: QueryDict) -> dict[str, Any]:
        serializer = cls(data=given)
        if not serializer.is_valid():
            raise InvalidParameters(serializer.errors)
        values: dict[str, Any] = serializer.validated_data
        return values


class StrictCharField(serializers.CharField):
    """JSON string that keeps its whitespace."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class OptionalCharField(StrictCharField):
    """JSON string that may be omitted or empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default="", allow_blank=True, **options)


class StrictBooleanField(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if data is True or data is False:
            return bool(data)
        return bool(self.fail("invalid", input=str(data)[:64]))


class StrictIntegerField(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return int(super().to_internal_value(data))


class StrictFloatField(serializers.FloatField):
    """JSON number."""

    def to_internal_value(self, data: Any) -> float:
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        return float(super().to_internal_value(data))


class IntegerParameterField(serializers.IntegerField):
    """Integer in a query string, where the base class also reads `1.0`, `1_0` and digits of other scripts."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, str) or not _INTEGER.fullmatch(data):
            self.fail("invalid")
        return int(super().to_internal_value(data))


class NumberParameterField(serializers.FloatField):
    """Number in a query string, where the base class also reads `1_0` and digits of other scripts."""

    def to_internal_value(self, data: Any) -> float:
        if not isinstance(data, str) or not _NUMBER.fullmatch(data):
            self.fail("invalid")
        return float(super().to_internal_value(data))


class StrictChoiceField(serializers.ChoiceField):
    """Choice of strings that refuses numbers, even if one prints like a choice."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=str(data)[:64])
        return super().to_internal_value(data)


class InstantField(serializers.DateTimeField):
    """Time with a UTC offset (RFC 3339), returned in UTC."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default_timezone=UTC, **options)

    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str) or not _INSTANT.fullmatch(value):
            self.fail("invalid", format="2026-11-30T18:00:00Z")
        try:
            moment = datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail("invalid", format="2026-11-30T18:00:00Z")
        return _check_year(self, moment)


class PeriodField(serializers.DateTimeField):
    """Start or end of a period in a query, in UTC unless it has an offset."""

    def to_internal_value(self, value: Any) -> datetime:
        if not str(value).isascii():  # the base class reads digits of all scripts
            self.fail("invalid", format="2026-11-30T18:00:00Z")
        return _check_year(self, super().to_internal_value(value))


def _check_year(field: serializers.Field, moment: datetime) -> datetime:
    """Return a time that others can be computed from; raises ValidationError."""
    if not 1970 <= moment.year <= 9998:
        field.fail("overflow")
    return moment


@extend_schema_field({"type": "string", "pattern": "^[0-9]{1,6}[mhdw]$"})
class LifetimeField(StrictCharField):
    """A duration such as `90m`, `8h`, `2d` or `1w`."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return lifetimes.read_lifetime(super().to_internal_value(data))
        except LifetimeError as error:
            raise ValidationError(str(error)) from None


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class StringMapField(serializers.DictField):
    child = StrictCharField(allow_blank=True, max_length=255)


class RoleField(serializers.ChoiceField):
    """Role by its name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=ROLES, **options)

    def to_representation(self, value: int) -> str:
        return name_role(value)


class StringsField(serializers.ListField):
    child = serializers.CharField()


def read_expiry(data: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the expiry set by `ttl` or `expires_at`; None if both are missing."""
    lifetime: timedelta | None = data.get("ttl")
    end: datetime | None = data.get("expires_at")
    if lifetime is not None and end is not None:
        raise ValidationError({"ttl": ["Send either ttl or expires_at, not both."]})
    if lifetime is not None:
        return now + lifetime
    if end is not None and not now < end <= now + lifetimes.LONGEST:
        raise ValidationError({"expires_at": ["The time must be within the next 366 days."]})
    return end


def endpoint(request: Request, account: str) -> str:
    """Return the endpoint URL of an account for SDKs, on the host of this request."""
    return f"{request.scheme}://{request.get_host()}/{account}"
