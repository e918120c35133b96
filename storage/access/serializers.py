"""Keys, stored access policies and SAS tokens as the management API shows and reads them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.access import sas as sas_operations
from storage.access.keys import KeyState
from storage.accounts import sealed_keys
from storage.accounts.connection_strings import ConnectionFormat, read_host
from storage.accounts.serializers import GRACE_LIMIT, KEYS
from storage.domain import sas
from storage.domain.access import policies
from storage.domain.access.policies import AccessPolicy, PolicyRule, SignedIdentifier
from storage.domain.errors import InvalidXmlNodeValue
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import KnownToken, TokenState
from storage.domain.sas.tokens import WRITTEN_VERSION
from storage.domain.values.dialects import KEY_LENGTH_LIMIT
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    InstantField,
    LifetimeField,
    OptionalCharField,
    QueryParameters,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
    endpoint,
)
from storage.rest.paging import PageParameters


class ConnectionStringParameters(QueryParameters):
    form = serializers.ChoiceField(
        choices=[form.value for form in ConnectionFormat],
        default=ConnectionFormat.STRING.value,
        help_text="Format: the string alone, or a configuration file or program that contains it.",
    )
    key = serializers.ChoiceField(choices=KEYS, default="key1", help_text="The key it contains.")
    host = serializers.CharField(
        default="",
        max_length=253,
        help_text="Address of the server for applications, such as `tablero:10002` or"
        " `https://tables.example.org`; by default the address of this request.",
    )

    def validate_host(self, host: str) -> str:
        found = read_host(host)
        if host and not found:
            raise ValidationError("This is not a host name.")
        return found


class KeySerializer(TypedSerializer):
    # fields of a KeyState

    name: str = serializers.ChoiceField(choices=KEYS)
    value: Annotated[str, "In base64."]
    since: Annotated[datetime, "When the key was created."]
    last_used_at: Annotated[datetime | None, {"source": "last.last"}]
    requests_24h: Annotated[int, {"source": "uses"}, "Requests in the last 24 hours."]

    def get_value(self, state: KeyState) -> str:
        return sealed_keys.encode_key(sealed_keys.keys_of(self.context["account"])[state.number - 1])


class KeyRotationSerializer(StrictSerializer):
    grace = LifetimeField(
        required=False,
        help_text="How long the old key and the tokens it signed are still accepted, up to `7d`. Azure has no such"
        " grace period.",
    )

    def validate_grace(self, grace: timedelta) -> timedelta:
        if grace > GRACE_LIMIT:
            raise ValidationError("The grace period can be at most seven days.")
        return grace


class ConnectionStringSerializer(TypedSerializer):
    form: ConnectionFormat
    key: str = serializers.ChoiceField(choices=KEYS)
    endpoint: str
    text: Annotated[str, "The connection string, or the file or program that contains it."]


class PolicyInstantField(StrictCharField):
    """Time in a stored access policy; an empty string leaves the time to the token."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            return policies.read_instant(text) if text else text
        except InvalidXmlNodeValue:
            raise ValidationError("This is not a valid time; write it as 2026-11-30T18:00:00Z.") from None


class AccessPolicySerializer(StrictSerializer):
    """Terms of a stored access policy; absent, null or empty fields are left to the tokens."""

    start = PolicyInstantField(allow_null=True, allow_blank=True, default=None, help_text="ISO 8601.")
    expiry = PolicyInstantField(allow_null=True, allow_blank=True, default=None, help_text="ISO 8601.")
    permission = StrictCharField(
        allow_null=True,
        allow_blank=True,
        default=None,
        max_length=4,
        help_text="Letters out of r, a, u, d: query, add, update, delete.",
    )


class SignedIdentifierSerializer(StrictSerializer):
    id = StrictCharField(
        source="identifier", max_length=64, help_text="The id that tokens reference; case-sensitive."
    )
    access_policy = AccessPolicySerializer(source="policy", allow_null=True, default=None)


class PoliciesSerializer(StrictSerializer):
    """The stored access policies of a table: a list of SignedIdentifier as ``items``."""

    items = SignedIdentifierSerializer(
        many=True, help_text="Up to five policies in order. They replace all existing ones."
    )

    def validate_items(self, items: list[dict[str, Any]]) -> list[SignedIdentifier]:
        identifiers = [
            SignedIdentifier(
                item["identifier"], None if item["policy"] is None else AccessPolicy(**item["policy"])
            )
            for item in items
        ]
        for fault in policies.find_faults(identifiers):
            raise ValidationError(_error_of(fault))
        return identifiers


def check_policies(by_id: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise a ValidationError, by policy id, for invalid policies."""
    for fault in policies.find_faults(
        [SignedIdentifier(id_, AccessPolicy(**it)) for id_, it in by_id.items()]
    ):
        message = [_MESSAGES[fault.rule]]
        raise ValidationError(message if fault.place is None else {list(by_id)[fault.place]: message})


_MESSAGES = {
    PolicyRule.NUMBER: "A table can have at most five policies.",
    PolicyRule.UNIQUE: "Another policy has this id.",
    PolicyRule.IDENTIFIER: "An id must have 1 to 64 characters that are allowed in XML.",
    PolicyRule.START: "This is not a valid time.",
    PolicyRule.EXPIRY: "This is not a valid time.",
    PolicyRule.PERMISSION: "Permissions must be letters out of r, a, u, d, each at most once.",
}


_MEMBERS = {PolicyRule.START: "start", PolicyRule.EXPIRY: "expiry", PolicyRule.PERMISSION: "permission"}


def _error_of(fault: policies.PolicyFault) -> Any:
    message = [_MESSAGES[fault.rule]]
    if fault.place is None:
        return message
    member = _MEMBERS.get(fault.rule)
    return {fault.place: {"access_policy": {member: message}} if member else {"id": message}}


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
    """Convert validated data to an unsigned token."""
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
    # fields of a known token and its state

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
    # fields of a known token, its state and the token with its signature

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
