"""Shared access signatures."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.access import sas as sas_operations
from storage.api.serializers.accounts import KEYS
from storage.domain import sas
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import KnownToken, TokenState
from storage.domain.sas.tokens import WRITTEN_VERSION
from storage.domain.values.names import KEY_LENGTH_LIMIT
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    InstantField,
    LifetimeField,
    OptionalCharField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
    endpoint,
)
from storage.rest.paging import PageParameters

Signed = TableSas | AccountSas
KINDS = ["table", "account"]
_TABLE_SAS_ONLY = ("policy", "start_partition", "start_row", "end_partition", "end_row")


class NewSasSerializer(StrictSerializer):
    """Without `policy`, send `permissions` and an expiry. With it, leave out what the policy sets."""

    label = StrictCharField(max_length=64, help_text="Name of the token in lists.")
    purpose = OptionalCharField(max_length=2000)
    owner = OptionalCharField(max_length=150, help_text="Person or team to contact about the token.")
    key = StrictChoiceField(choices=KEYS, default="key1", help_text="The key that signs it.")
    table = OptionalCharField(
        max_length=63, help_text="Table of a table SAS; without it, the token is an account SAS."
    )
    policy = OptionalCharField(max_length=64, help_text="Id of a stored access policy of the table.")
    permissions = OptionalCharField(
        max_length=16, help_text="Letters out of `raud`; for an account SAS out of `rwdlacu`."
    )
    start = InstantField(required=False)
    expires_at = InstantField(required=False)
    ttl = LifetimeField(
        required=False, help_text="Lifetime from now, instead of `expires_at`: `90m`, `8h`, `2d`, `1w`."
    )
    protocol = StrictChoiceField(choices=["https", "https,http"], default="https,http")
    ip = OptionalCharField(max_length=80, help_text="An IP address, or a range such as `10.0.0.1-10.0.0.9`.")
    start_partition = OptionalCharField(max_length=KEY_LENGTH_LIMIT)
    start_row = OptionalCharField(max_length=KEY_LENGTH_LIMIT)
    end_partition = OptionalCharField(max_length=KEY_LENGTH_LIMIT)
    end_row = OptionalCharField(max_length=KEY_LENGTH_LIMIT)
    resource_types = StrictCharField(
        max_length=3,
        default="sco",
        help_text="Of an account SAS: letters out of s (service), c (tables) and o (entities).",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "ttl" in attrs and "expires_at" in attrs:
            raise ValidationError({"ttl": ["Send either ttl or expires_at, not both."]})
        if not attrs["table"]:
            wrong = {name: ["Only a table SAS can have this."] for name in _TABLE_SAS_ONLY if attrs[name]}
            if wrong:
                raise ValidationError(wrong)
        return attrs


class SasChangeSerializer(StrictSerializer):
    label = StrictCharField(max_length=64, required=False)
    purpose = StrictCharField(max_length=2000, allow_blank=True, required=False)
    owner = StrictCharField(max_length=150, allow_blank=True, required=False)


def unsigned_token(data: dict[str, Any], now: datetime) -> Signed:
    """Return the token that a NewSasSerializer describes."""
    end = now + data["ttl"] if "ttl" in data else data.get("expires_at")
    shared = {
        "version": WRITTEN_VERSION,
        "permissions": data["permissions"],
        "start": _write_instant(data.get("start")),
        "expiry": _write_instant(end),
        "address": data["ip"],
        "protocol": data["protocol"],
    }
    if not data["table"]:
        return AccountSas(services="t", resource_types=data["resource_types"], **shared)
    ranges = {name: data[name] for name in ("start_partition", "start_row", "end_partition", "end_row")}
    return TableSas(table=data["table"], identifier=data["policy"], **shared, **ranges)


def _write_instant(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class SasListParameters(PageParameters):
    state = serializers.ChoiceField(choices=[state.value for state in TokenState], default="")
    table = serializers.CharField(default="", max_length=63)


class SasSerializer(TypedSerializer):
    # of a known token and its state

    fingerprint: Annotated[str, "SHA-256 of the signature, in hexadecimal."]
    kind: Literal["table", "account"]
    table: str
    label: str
    purpose: str
    owner: str
    author: str
    is_registered: Annotated[
        bool, "Whether the token was issued or labelled here; otherwise it was only seen in requests."
    ]
    state: TokenState
    key: str | None = serializers.ChoiceField(
        choices=KEYS, allow_null=True, help_text="The key that verifies its signature; null: none does."
    )
    parameters: Annotated[dict[str, str], "All query parameters of the token except the signature."]
    created_at: datetime | None
    last_used_at: datetime | None
    requests_24h: Annotated[int, "Requests in the last 24 hours."]

    def to_representation(self, instance: tuple[Any, ...]) -> Any:
        return super().to_representation(self.values(*instance))

    def values(self, known: KnownToken, state: TokenState) -> dict[str, Any]:
        stored = {name: getattr(known, name) for name in self.fields if hasattr(known, name)}
        return {
            **stored,
            "kind": sas_operations.kind_of(known.token),
            "state": state.value,
            "key": None if known.key is None else f"key{known.key}",
            "parameters": dict(sas.to_parameters(known.token)),
            "created_at": known.created,
            "last_used_at": known.last_used,
            "requests_24h": known.uses,
        }


class IssuedSasSerializer(SasSerializer):
    # of a known token, its state and the token with its signature

    token: Annotated[str, "The query string with the signature. It cannot be shown again."]
    url: Annotated[str, "The token with its endpoint."]
    connection_string: str

    def values(self, known: KnownToken, state: TokenState, signed: Signed | None = None) -> dict[str, Any]:
        assert signed is not None
        base = endpoint(self.context["request"], self.context["account"].name)
        token = sas.write(signed)
        return {
            **super().values(known, state),
            "token": token,
            "url": f"{base}/{signed.table}?{token}" if isinstance(signed, TableSas) else f"{base}?{token}",
            "connection_string": f"TableEndpoint={base};SharedAccessSignature={token}",
        }
