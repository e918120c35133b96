"""Tables, and their stored access policies."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.api.paging import PageParameters
from storage.api.serializers.fields import Instant, Parameters, Strict, Text
from storage.domain.access import policies
from storage.domain.access.policies import AccessPolicy, PolicyRule, SignedIdentifier
from storage.domain.errors import InvalidXmlNodeValue

TAG_LIMIT = 20


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9]{2,62}$"})
class TableName(Text):
    """What is none is refused by the service, in its own words."""


class NewTable(Strict):
    name = TableName(
        max_length=63, help_text="3 to 63 letters and digits, a letter first; case does not count."
    )
    description = Text(max_length=2000, allow_blank=True, default="")
    tags = serializers.ListField(child=Text(max_length=40), max_length=TAG_LIMIT, default=list)

    def validate_tags(self, tags: list[str]) -> list[str]:
        if len({tag.casefold() for tag in tags}) != len(tags):
            raise ValidationError("A tag comes twice.")
        return tags


class TableChange(NewTable):
    name = None  # type: ignore[assignment]
    description = Text(max_length=2000, allow_blank=True, required=False)
    tags = serializers.ListField(child=Text(max_length=40), max_length=TAG_LIMIT, required=False)


class TableParameters(PageParameters):
    name = serializers.CharField(
        default="", max_length=63, help_text="What the name begins with, in any case."
    )
    tag = serializers.CharField(default="", max_length=40, help_text="Only those with this tag.")
    state = serializers.ChoiceField(
        choices=["present", "deleted"],
        default="present",
        help_text="`deleted`: those that can be brought back.",
    )


class TableDeletionParameters(Parameters):
    confirm = serializers.CharField(
        default="", max_length=24, help_text="The name of the account, if that is protected."
    )


class Table(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    created_at = Instant()
    deleted_at = Instant(allow_null=True)
    kept_until = Instant(allow_null=True, help_text="Until when a deleted one can be brought back.")
    url = serializers.CharField(help_text="For SDKs and tokens.")


class Tables(serializers.Serializer[Any]):
    items = Table(many=True)
    next = serializers.URLField(allow_null=True)


class Terms(Strict):
    """What a token with this policy need not say. Absent, null and empty all leave it to the token."""

    start = Text(allow_null=True, allow_blank=True, default=None, help_text="From when; ISO 8601.")
    expiry = Text(allow_null=True, allow_blank=True, default=None, help_text="Until when; ISO 8601.")
    permission = Text(
        allow_null=True,
        allow_blank=True,
        default=None,
        max_length=4,
        help_text="Of r, a, u, d: query, add, update, delete.",
    )

    def validate_start(self, value: str | None) -> str | None:
        return _instant(value)

    def validate_expiry(self, value: str | None) -> str | None:
        return _instant(value)


class Policy(Strict):
    id = Text(max_length=64, help_text="What tokens name; case counts.")
    access_policy = Terms(allow_null=True, default=None)


class Policies(Strict):
    items = Policy(many=True, help_text="Up to five, in order; they take the place of all there were.")

    def validate_items(self, items: list[dict[str, Any]]) -> list[SignedIdentifier]:
        found = [_identifier(item) for item in items]
        for fault in policies.find_faults(found):
            raise ValidationError(_said(fault))
        return found


_FAULTS = {
    PolicyRule.NUMBER: "A table has at most five policies.",
    PolicyRule.UNIQUE: "This id comes twice.",
    PolicyRule.IDENTIFIER: "An id has 1 to 64 characters, of those that XML can hold.",
    PolicyRule.START: "This is no instant.",
    PolicyRule.EXPIRY: "This is no instant.",
    PolicyRule.PERMISSION: "Permissions are some of r, a, u, d, each once.",
}
_MEMBERS = {PolicyRule.START: "start", PolicyRule.EXPIRY: "expiry", PolicyRule.PERMISSION: "permission"}


def _said(fault: policies.PolicyFault) -> Any:
    text = [_FAULTS[fault.rule]]
    if fault.place is None:
        return text
    member = _MEMBERS.get(fault.rule)
    return {fault.place: {"access_policy": {member: text}} if member else {"id": text}}


def _identifier(item: dict[str, Any]) -> SignedIdentifier:
    terms = item["access_policy"]
    if terms is None:
        return SignedIdentifier(item["id"])
    return SignedIdentifier(item["id"], AccessPolicy(terms["start"], terms["expiry"], terms["permission"]))


def _instant(text: str | None) -> str | None:
    try:
        return policies.read_instant(text) if text else text
    except InvalidXmlNodeValue:
        raise ValidationError("This is no instant; write it as 2026-11-30T18:00:00Z.") from None


def write_policies(identifiers: list[SignedIdentifier]) -> list[dict[str, Any]]:
    return [
        {
            "id": one.identifier,
            "access_policy": None
            if one.policy is None
            else {
                "start": one.policy.start,
                "expiry": one.policy.expiry,
                "permission": one.policy.permission,
            },
        }
        for one in identifiers
    ]
