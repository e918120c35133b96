"""Shared access signatures."""

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.api.paging import PageParameters
from storage.api.serializers.accounts import KEYS
from storage.api.serializers.fields import Choice, Instant, Lifetime, Strict, Text, TextByName
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import TokenState
from storage.domain.sas.tokens import WRITTEN_VERSION
from storage.domain.values.names import KEY_LENGTH_LIMIT

KINDS = ["table", "account"]


class NewSas(Strict):
    """Without `policy` it needs `permissions` and an end; with it, what the policy says may not be said again."""

    label = Text(max_length=64, help_text="What the token is known by.")
    purpose = Text(max_length=2000, allow_blank=True, default="")
    owner = Text(max_length=150, allow_blank=True, default="", help_text="Whom to ask about it.")
    key = Choice(choices=KEYS, default="key1", help_text="Which key signs it.")
    table = Text(
        max_length=63,
        default="",
        allow_blank=True,
        help_text="For a table SAS; without it, it is for the whole account.",
    )
    policy = Text(
        max_length=64,
        default="",
        allow_blank=True,
        help_text="The id of a stored access policy of the table.",
    )
    permissions = Text(
        max_length=16, default="", allow_blank=True, help_text="Of `raud`; of the whole account `rwdlacu`."
    )
    start = Instant(required=False)
    expires_at = Instant(required=False)
    ttl = Lifetime(required=False, help_text="In place of `expires_at`: `90m`, `8h`, `2d`, `1w` from now.")
    protocol = Choice(choices=["https", "https,http"], default="https,http")
    ip = Text(
        max_length=80,
        default="",
        allow_blank=True,
        help_text="An address, or a range as `10.0.0.1-10.0.0.9`.",
    )
    start_partition = Text(max_length=KEY_LENGTH_LIMIT, default="", allow_blank=True)
    start_row = Text(max_length=KEY_LENGTH_LIMIT, default="", allow_blank=True)
    end_partition = Text(max_length=KEY_LENGTH_LIMIT, default="", allow_blank=True)
    end_row = Text(max_length=KEY_LENGTH_LIMIT, default="", allow_blank=True)
    resource_types = Text(
        max_length=3,
        default="sco",
        help_text="Of the whole account: some of s (service), c (tables), o (entities).",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "ttl" in attrs and "expires_at" in attrs:
            raise ValidationError({"ttl": ["Say either ttl or expires_at."]})
        if not attrs["table"]:
            only = ("policy", "start_partition", "start_row", "end_partition", "end_row")
            wrong = {name: ["This is for a table SAS alone."] for name in only if attrs[name]}
            if wrong:
                raise ValidationError(wrong)
        return attrs


def token_of(data: dict[str, Any], now: datetime) -> TableSas | AccountSas:
    end = now + data["ttl"] if "ttl" in data else data.get("expires_at")
    shared = {
        "version": WRITTEN_VERSION,
        "permissions": data["permissions"],
        "start": _moment(data.get("start")),
        "expiry": _moment(end),
        "address": data["ip"],
        "protocol": data["protocol"],
    }
    if not data["table"]:
        return AccountSas(services="t", resource_types=data["resource_types"], **shared)
    ranges = {name: data[name] for name in ("start_partition", "start_row", "end_partition", "end_row")}
    return TableSas(table=data["table"], identifier=data["policy"], **shared, **ranges)


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class SasParameters(PageParameters):
    state = serializers.ChoiceField(choices=[state.value for state in TokenState], default="")
    table = serializers.CharField(default="", max_length=63)


class Sas(serializers.Serializer[Any]):
    fingerprint = serializers.CharField(help_text="Hexadecimal SHA-256 of the signature.")
    kind = serializers.ChoiceField(choices=KINDS)
    table = serializers.CharField()
    label = serializers.CharField()
    purpose = serializers.CharField()
    owner = serializers.CharField()
    author = serializers.CharField()
    is_registered = serializers.BooleanField(help_text="Made here; else it was seen in use.")
    state = serializers.ChoiceField(choices=[state.value for state in TokenState])
    key = serializers.ChoiceField(
        choices=KEYS, allow_null=True, help_text="Which key verifies it; null: none."
    )
    parameters = TextByName(help_text="All of its parameters but the signature.")
    created_at = Instant(allow_null=True)
    last_used_at = Instant(allow_null=True)
    requests_24h = serializers.IntegerField()


class SasList(serializers.Serializer[Any]):
    items = Sas(many=True)
    next = serializers.URLField(allow_null=True)


class IssuedSas(Sas):
    token = serializers.CharField(help_text="The query string; nobody can be told it again.")
    url = serializers.CharField(help_text="With the endpoint before it.")
    connection_string = serializers.CharField()
