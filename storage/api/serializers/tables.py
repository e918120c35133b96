"""Tables and their stored access policies."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.domain.access import policies
from storage.domain.access.policies import AccessPolicy, PolicyRule, SignedIdentifier
from storage.domain.errors import InvalidXmlNodeValue
from storage.models import Table
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    OptionalCharField,
    QueryParameters,
    StrictCharField,
    StrictSerializer,
    endpoint,
)
from storage.rest.paging import PageParameters

TAG_LIMIT = 20


class TableNameField(StrictCharField):
    """A table name; the operation refuses an invalid one with the service's own message."""


class NewTableSerializer(StrictSerializer):
    name = TableNameField(
        max_length=255,
        help_text="3 to 63 letters and digits, starting with a letter; case-insensitive. In accounts of the kind"
        r" `cosmos` up to 254 characters except `/ \ # ?`.",
    )
    description = OptionalCharField(max_length=2000)
    tags = serializers.ListField(child=StrictCharField(max_length=40), max_length=TAG_LIMIT, default=list)

    def validate_tags(self, tags: list[str]) -> list[str]:
        if len({tag.casefold() for tag in tags}) != len(tags):
            raise ValidationError("Each tag can occur only once.")
        return tags


class TableChangeSerializer(NewTableSerializer):
    name = None  # type: ignore[assignment]
    throughput = serializers.IntegerField(
        min_value=0,
        max_value=1_000_000,
        required=False,
        help_text="Request units per second, only in accounts of the kind `cosmos`: a point read takes one, a write"
        " five. Beyond them requests answer 429. 0 for no limit.",
    )
    description = StrictCharField(max_length=2000, allow_blank=True, required=False)
    tags = serializers.ListField(child=StrictCharField(max_length=40), max_length=TAG_LIMIT, required=False)


class TableListParameters(PageParameters):
    name = serializers.CharField(default="", max_length=255, help_text="Prefix of the name, in any case.")
    tag = serializers.CharField(default="", max_length=40, help_text="Only tables with this tag.")
    state = serializers.ChoiceField(
        choices=["present", "deleted"],
        default="present",
        help_text="`deleted`: deleted tables that can be restored.",
    )


class TableDeletionParameters(QueryParameters):
    confirm = serializers.CharField(
        default="", max_length=24, help_text="Name of the account; required if the account is protected."
    )


class TableSerializer(TypedSerializer):
    name: str
    description: str
    tags: list[str]
    throughput: Annotated[int, "Request units per second; 0 for no limit."]
    created_at: datetime
    deleted_at: datetime | None
    kept_until: Annotated[datetime | None, "Until when a deleted table can be restored."]
    distributed: Annotated[bool, "Whether its rows are on several nodes of a cluster."]
    url: Annotated[str, "URL for SDKs and tokens."]

    def get_url(self, table: Table) -> str:
        return f"{endpoint(self.context['request'], self.context['account'].name)}/{table.name}"


class PolicyInstantField(StrictCharField):
    """A time as policies store it; empty leaves it to the token."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            return policies.read_instant(text) if text else text
        except InvalidXmlNodeValue:
            raise ValidationError("This is not a valid time; write it as 2026-11-30T18:00:00Z.") from None


class AccessPolicySerializer(StrictSerializer):
    """What tokens inherit from the policy. Fields that are absent, null or empty are set by the token."""

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
        found = [
            SignedIdentifier(
                item["identifier"], None if item["policy"] is None else AccessPolicy(**item["policy"])
            )
            for item in items
        ]
        for fault in policies.find_faults(found):
            raise ValidationError(_error_of(fault))
        return found


def check_policies(by_id: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise a ValidationError by the ids of policies that a table cannot have."""
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
