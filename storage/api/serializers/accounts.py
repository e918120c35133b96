"""Accounts, their keys and connection strings."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.access.keys import KeyState
from storage.account_files.account_building import BuiltAccount
from storage.accounts import quotas, sealed_keys
from storage.accounts.connection_strings import ConnectionFormat, connection_string, read_host
from storage.core.account_settings import SETTINGS, Setting
from storage.core.labels import LabelError
from storage.core.lifetimes import AccountStage
from storage.domain.access.addresses import read_network
from storage.domain.access.roles import Role
from storage.domain.entities.fits import Misfit
from storage.domain.requests.observed import KEY_NAMES
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import is_account_name
from storage.models import Account
from storage.rest.answers import FIELDS, TypedSerializer
from storage.rest.fields import (
    InstantField,
    LifetimeField,
    QueryParameters,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StringMapField,
    endpoint,
)
from storage.rest.paging import PageParameters

COLOUR = r"^(#[0-9a-f]{6})?\Z"
STAGES = [stage.value for stage in AccountStage]
KEYS = list(KEY_NAMES)
GRACE_LIMIT = timedelta(days=7)


class LabelsField(StringMapField):
    def to_internal_value(self, data: Any) -> Any:
        found = super().to_internal_value(data)
        try:
            quotas.check_all_labels(found)
        except LabelError as error:
            raise ValidationError(str(error)) from None
        return found


class NetworksField(serializers.ListField):
    child = StrictCharField(max_length=64)

    def to_internal_value(self, data: Any) -> list[str]:
        found: list[str] = super().to_internal_value(data)
        wrong = {
            index: ["This is not an IP address or network."]
            for index, text in enumerate(found)
            if read_network(text) is None
        }
        if wrong:
            raise ValidationError(wrong)
        return found


@extend_schema_field({"type": "string", "pattern": "^[a-z0-9]{3,24}$"})
class AccountNameField(StrictCharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(min_length=3, max_length=24, **options)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if not is_account_name(name):
            raise ValidationError("An account name must be 3 to 24 lower-case letters a to z and digits.")
        return name


@extend_schema_field({"type": "string", "pattern": "^#[0-9a-f]{6}$"})  # or empty, which the generator adds
class ColourField(StrictCharField, serializers.RegexField):
    def __init__(self, **options: Any) -> None:
        super().__init__(regex=COLOUR, allow_blank=True, **options)


class AccountKindField(serializers.ChoiceField):
    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[kind.value for kind in AccountKind], **options)

    def to_internal_value(self, data: Any) -> AccountKind:
        return AccountKind(super().to_internal_value(data))


def setting_fields(names: Iterable[str], *, is_answer: bool = False) -> dict[str, serializers.Field]:
    """Make the fields of settings in a request, or in an answer."""
    return {name: _setting_field(SETTINGS[name], is_answer=is_answer) for name in names}


def _setting_field(setting: Setting, *, is_answer: bool) -> serializers.Field:
    options: dict[str, Any] = {"help_text": setting.help or None}
    if setting.is_nullable:
        options["allow_null"] = True
    if not is_answer:
        options["required"] = False
    if setting.choices:
        return serializers.ChoiceField(choices=setting.choices, **options)
    if is_answer:
        return FIELDS[setting.type](**options)
    if setting.name == "colour":
        return ColourField(**options)
    if setting.type is int:
        return StrictIntegerField(min_value=setting.least, max_value=setting.most, **options)
    if setting.type is str:
        return StrictCharField(max_length=setting.most, allow_blank=True, **options)
    if setting.type is list:
        return NetworksField(max_length=setting.most, **options)
    return {bool: StrictBooleanField, dict: LabelsField, datetime: InstantField}[setting.type](**options)


# the first in the order of answers
_DESCRIPTION: Final = ("label", "description", "colour", "labels")
# a state in answers, which operations of its own change
_OTHERS: Final = tuple(name for name in SETTINGS if name not in {*_DESCRIPTION, "enabled"})


class AccountFieldsSerializer(StrictSerializer):
    ttl = LifetimeField(
        required=False,
        help_text="Lifetime from now: `90m`, `8h`, `2d`, `1w`. At its end the account is frozen, and 24 hours"
        " later it is deleted.",
    )

    def get_fields(self) -> dict[str, Any]:
        return {**setting_fields(_DESCRIPTION), **super().get_fields()}


class NewAccountSerializer(AccountFieldsSerializer):
    name = AccountNameField(
        required=False,
        help_text="3 to 24 lower-case letters and digits. Without a name, the server generates one.",
    )
    kind = AccountKindField(
        required=False,
        help_text="Compatible with Azure Table storage (`storage`, the default) or with Azure Cosmos DB for Table"
        " (`cosmos`). It cannot be changed later.",
    )
    expires_at = InstantField(required=False, help_text="End of the lifetime, instead of `ttl`.")


class AccountChangeSerializer(AccountFieldsSerializer):
    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), **setting_fields(_OTHERS)}


class AccountListParameters(PageParameters):
    name = serializers.CharField(default="", max_length=24, help_text="Prefix of the name.")
    label = serializers.ListField(
        child=serializers.CharField(max_length=320),
        default=list,
        help_text="`branch=main`, or `branch` for any value. If repeated, an account must match all of them.",
    )
    state = serializers.ChoiceField(choices=STAGES, default="", help_text="Only accounts in this state.")


class AccountDeletionParameters(QueryParameters):
    with_tables = serializers.BooleanField(default=False, help_text="Delete the tables of the account too.")


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


class AccountSerializer(TypedSerializer):
    # of an account and the role of the token's user in it

    name: str
    kind: AccountKind
    state: Annotated[
        AccountStage, "`frozen`: by a user; `expired`: its lifetime is over, and it will be deleted."
    ]
    created_at: datetime
    deleted_at: Annotated[datetime | None, "When an expired account will be deleted."]
    endpoint: Annotated[str, "URL for SDKs, on the host at which this request reached the server."]
    role: Annotated[Role, "Role of the token's user."]

    def get_fields(self) -> dict[str, Any]:
        found = {**super().get_fields(), **setting_fields((*_DESCRIPTION, *_OTHERS), is_answer=True)}
        others = (name for name in _OTHERS if name != "expires_at")
        order = ("name", "kind", *_DESCRIPTION, "state", *others, "created_at", "expires_at", *found)
        return {name: found[name] for name in dict.fromkeys(order)}

    def to_representation(self, instance: tuple[Account, Role]) -> Any:
        return super().to_representation(self.values(*instance))

    def values(self, account: Account, role: Role) -> dict[str, Any]:
        stored = {name: getattr(account, name) for name in self.fields if hasattr(account, name)}
        return {
            **stored,
            "state": account.stage.value,
            "deleted_at": account.purged_at,
            "endpoint": endpoint(self.context["request"], account.name),
            "role": role,
        }


class CreatedAccountSerializer(AccountSerializer):
    connection_string: Annotated[str, "Connection string for SDKs. It contains key 1: keep it secret."]

    def values(self, account: Account, role: Role) -> dict[str, Any]:
        found = super().values(account, role)
        key = sealed_keys.encode_key(sealed_keys.keys_of(account)[0])
        return {**found, "connection_string": connection_string(account.name, found["endpoint"], key)}


class CopyCheckParameters(QueryParameters):
    kind = AccountKindField(required=False, help_text="Of the copy; by default that of the account.")


class CopySerializer(StrictSerializer):
    name = AccountNameField(help_text="Of the new account.")
    kind = AccountKindField(required=False, help_text="Of the new account; by default that of the account.")
    skip = StrictBooleanField(default=False, help_text="Leave out what does not fit.")


class CopyFindingSerializer(TypedSerializer):
    # of a Finding

    reason: str = serializers.ChoiceField(choices=[it.code for it in Misfit], source="misfit.code")
    table: str
    entities: Annotated[int, {"source": "number"}, "How many; 0 if it is about the table itself."]
    example: Annotated[list[str] | None, "PartitionKey and RowKey of one of the entities."]


class CopyCheckSerializer(TypedSerializer):
    items: list[CopyFindingSerializer]


class CopiedSerializer(TypedSerializer):
    # of a BuiltAccount

    account: CreatedAccountSerializer
    tables: int
    entities: int

    def to_representation(self, instance: BuiltAccount) -> Any:
        found = {name: getattr(instance, name) for name in self.fields}
        return super().to_representation({**found, "account": (instance.account, Role.OWNER)})


class KeySerializer(TypedSerializer):
    # of a KeyState

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
