"""Accounts, their keys, and how applications connect."""

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.api.paging import PageParameters
from storage.api.serializers.fields import Flag, Instant, Lifetime, Parameters, Strict, Text, TextByName
from storage.domain.access.addresses import read_network
from storage.domain.access.roles import Role
from storage.domain.service import labels
from storage.domain.service.connections import ConnectionFormat, read_host
from storage.domain.service.labels import LabelError
from storage.domain.service.lifetimes import AccountStage
from storage.domain.values.names import is_account_name

COLOUR = r"^(#[0-9a-f]{6})?\Z"
STAGES = [stage.value for stage in AccountStage]
ROLES = [role.name.lower() for role in Role]
KEYS = ["key1", "key2"]
GRACE_LIMIT = timedelta(days=7)


class Labels(TextByName):
    def to_internal_value(self, data: Any) -> Any:
        found = super().to_internal_value(data)
        try:
            labels.check_labels(found)
        except LabelError as error:
            raise ValidationError(str(error)) from None
        return found


@extend_schema_field({"type": "string", "pattern": "^[a-z0-9]{3,24}$"})
class AccountName(Text):
    def __init__(self, **options: Any) -> None:
        super().__init__(min_length=3, max_length=24, **options)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if not is_account_name(name):
            raise ValidationError("A name is 3 to 24 lower-case letters a to z and digits.")
        return name


@extend_schema_field({"type": "string", "pattern": "^(#[0-9a-f]{6})?$"})
class Colour(Text, serializers.RegexField):
    def __init__(self, **options: Any) -> None:
        super().__init__(regex=COLOUR, allow_blank=True, **options)


class Description(Strict):
    label = Text(
        max_length=64, allow_blank=True, required=False, help_text="Stands beside the name in the console."
    )
    description = Text(max_length=2000, allow_blank=True, required=False)
    colour = Colour(
        required=False, help_text="`#rrggbb`, a band on every page of the account; empty for none."
    )
    labels = Labels(
        required=False,
        help_text="Up to 32 texts by name, to find accounts by: letters, digits and . _ / - make a name.",
    )
    ttl = Lifetime(
        required=False,
        help_text="How long the account lives from now: `90m`, `8h`, `2d`, `1w`. Then it is frozen, and a day"
        " later deleted.",
    )


class NewAccount(Description):
    name = AccountName(
        required=False,
        help_text="3 to 24 lower-case letters and digits; made up by the server if it is left out.",
    )
    expires_at = Instant(required=False, help_text="In place of `ttl`: until when.")


class AccountChange(Description):
    expires_at = Instant(
        required=False, allow_null=True, help_text="In place of `ttl`: until when; null: for good."
    )
    protected = Flag(required=False, help_text="It cannot be deleted, also not when its time is over.")
    read_only = Flag(required=False, help_text="Every write is refused, through every door.")
    shared_key_access = Flag(
        required=False, help_text="Whether keys, and signatures made with them, are accepted."
    )
    networks = serializers.ListField(
        child=Text(max_length=64),
        max_length=100,
        required=False,
        help_text="Addresses and networks whose requests are answered; none: all.",
    )

    def validate_networks(self, networks: list[str]) -> list[str]:
        wrong = {place: ["This is no address and no network."] for place, text in enumerate(networks)
                 if read_network(text) is None}  # fmt: skip
        if wrong:
            raise ValidationError(wrong)
        return networks


class AccountParameters(PageParameters):
    name = serializers.CharField(default="", max_length=24, help_text="What the name begins with.")
    label = serializers.ListField(
        child=serializers.CharField(max_length=320),
        default=list,
        help_text="`branch=main`, or `branch` for any value; if it is said several times, all must be so.",
    )
    state = serializers.ChoiceField(choices=STAGES, default="", help_text="Only those in this state.")


class DeletionParameters(Parameters):
    with_tables = serializers.BooleanField(default=False, help_text="Delete its tables as well.")


class ConnectionParameters(Parameters):
    form = serializers.ChoiceField(
        choices=[form.value for form in ConnectionFormat],
        default=ConnectionFormat.STRING.value,
        help_text="What to put it into.",
    )
    key = serializers.ChoiceField(choices=KEYS, default="key1", help_text="Which key it holds.")
    host = serializers.CharField(
        default="",
        max_length=253,
        help_text="Where applications find the server, as `tablero:10002` or `https://tables.example.org`;"
        " else where this request found it.",
    )

    def validate_host(self, host: str) -> str:
        found = read_host(host)
        if host and not found:
            raise ValidationError("This is no name of a host.")
        return found


class Account(serializers.Serializer[Any]):
    name = serializers.CharField()
    label = serializers.CharField()
    description = serializers.CharField()
    colour = serializers.CharField()
    labels = TextByName()
    state = serializers.ChoiceField(
        choices=STAGES,
        help_text="`frozen` by hand, or `expired`: frozen because its time is over, and about to be deleted.",
    )
    protected = serializers.BooleanField()
    read_only = serializers.BooleanField()
    shared_key_access = serializers.BooleanField()
    networks = serializers.ListField(child=serializers.CharField())
    created_at = Instant()
    expires_at = Instant(allow_null=True, help_text="When it is frozen.")
    deleted_at = Instant(allow_null=True, help_text="When an expired one will be deleted.")
    endpoint = serializers.CharField(help_text="For SDKs, where this request found the server.")
    role = serializers.ChoiceField(choices=ROLES, help_text="What the token's user is in it.")


class MadeAccount(Account):
    connection_string = serializers.CharField(help_text="For any SDK; it holds key 1, so keep it secret.")


class Accounts(serializers.Serializer[Any]):
    items = Account(many=True)
    next = serializers.URLField(allow_null=True, help_text="The address of the next page.")


class Key(serializers.Serializer[Any]):
    name = serializers.ChoiceField(choices=KEYS)
    value = serializers.CharField(help_text="In base64.")
    since = Instant()
    last_used_at = Instant(allow_null=True)
    requests_24h = serializers.IntegerField()


class Rotation(Strict):
    grace = Lifetime(
        required=False,
        help_text="For how long the old key, and what it signed, is accepted yet: up to `7d`. The cloud's service has"
        " no such grace.",
    )

    def validate_grace(self, grace: timedelta) -> timedelta:
        if grace > GRACE_LIMIT:
            raise ValidationError("The old key is accepted for at most seven days.")
        return grace


class Keys(serializers.Serializer[Any]):
    items = Key(many=True)


class Connection(serializers.Serializer[Any]):
    form = serializers.ChoiceField(choices=[form.value for form in ConnectionFormat])
    key = serializers.ChoiceField(choices=KEYS)
    endpoint = serializers.CharField()
    text = serializers.CharField(help_text="The connection string, or a file or program that holds it.")
