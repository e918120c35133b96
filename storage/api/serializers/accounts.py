"""Accounts, their keys and connection strings."""

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.api.paging import PageParameters, PageSerializer
from storage.api.serializers.fields import (
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
from storage.domain.access.addresses import read_network
from storage.domain.access.roles import Role
from storage.domain.entities.fits import Misfit
from storage.domain.requests.observed import KEY_NAMES
from storage.domain.service import labels
from storage.domain.service.connections import ConnectionFormat, connection_string, read_host
from storage.domain.service.consistency import STALENESS_LIMIT, Consistency
from storage.domain.service.labels import LabelError
from storage.domain.service.lifetimes import AccountStage
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import is_account_name
from storage.models import Account
from storage.operations.access.keys import KeyState
from storage.operations.accounts import accounts
from storage.operations.accounts.accounts import HISTORY_DAYS_LIMIT, LEAST_HISTORY
from storage.operations.snapshots.account_copies import Finding

COLOUR = r"^(#[0-9a-f]{6})?\Z"
STAGES = [stage.value for stage in AccountStage]
ROLES = [role.name.lower() for role in Role]
KEYS = list(KEY_NAMES)
GRACE_LIMIT = timedelta(days=7)


class LabelsField(StringMapField):
    def to_internal_value(self, data: Any) -> Any:
        found = super().to_internal_value(data)
        try:
            labels.check_labels(found)
        except LabelError as error:
            raise ValidationError(str(error)) from None
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


@extend_schema_field({"type": "string", "pattern": "^(#[0-9a-f]{6})?$"})
class ColourField(StrictCharField, serializers.RegexField):
    def __init__(self, **options: Any) -> None:
        super().__init__(regex=COLOUR, allow_blank=True, **options)


class RoleField(serializers.ChoiceField):
    """A role, answered by its name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=ROLES, **options)

    def to_representation(self, value: int) -> str:
        return Role(value).name.lower()


class AccountKindField(serializers.ChoiceField):
    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[kind.value for kind in AccountKind], **options)

    def to_internal_value(self, data: Any) -> AccountKind:
        return AccountKind(super().to_internal_value(data))


class ConsistencyField(serializers.ChoiceField):
    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[level.value for level in Consistency], **options)


class AccountFieldsSerializer(StrictSerializer):
    label = StrictCharField(
        max_length=64, allow_blank=True, required=False, help_text="Shown beside the name in the console."
    )
    description = StrictCharField(max_length=2000, allow_blank=True, required=False)
    colour = ColourField(
        required=False, help_text="`#rrggbb`, shown as a band on the pages of the account; empty for none."
    )
    labels = LabelsField(
        required=False,
        help_text="Up to 32 labels to find accounts by. A name consists of letters, digits and `. _ / -`.",
    )
    ttl = LifetimeField(
        required=False,
        help_text="Lifetime from now: `90m`, `8h`, `2d`, `1w`. At its end the account is frozen, and 24 hours"
        " later it is deleted.",
    )


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
    expires_at = InstantField(
        required=False,
        allow_null=True,
        help_text="End of the lifetime, instead of `ttl`; null: the account does not expire.",
    )
    protected = StrictBooleanField(
        required=False, help_text="The account cannot be deleted, not even after its lifetime."
    )
    read_only = StrictBooleanField(required=False, help_text="Writes through any interface are refused.")
    adaptive_indexes = StrictBooleanField(
        required=False,
        help_text="The server adds indexes of properties whose ranges are queried, and drops unused ones.",
    )
    distributes = StrictBooleanField(
        required=False,
        help_text="New tables are distributed over the nodes of the Citus cluster; 409 if there is none.",
    )
    history_days = StrictIntegerField(
        required=False,
        min_value=0,
        max_value=HISTORY_DAYS_LIMIT,
        help_text="How long changes of entities are kept; 0 turns history off and deletes it.",
    )
    history_bytes = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=LEAST_HISTORY,
        help_text="What they may take on disk; null: a share of it.",
    )
    consistency = ConsistencyField(
        required=False,
        help_text="Level of consistency of reads that do not ask for less: see the page *Consistency*.",
    )
    max_staleness = StrictIntegerField(
        required=False,
        min_value=1,
        max_value=STALENESS_LIMIT,
        help_text="Seconds by which reads may be behind at the level `BoundedStaleness`.",
    )
    shared_key_access = StrictBooleanField(
        required=False,
        help_text="Requests signed with an account key, and tokens signed with one, are accepted.",
    )
    networks = serializers.ListField(
        child=StrictCharField(max_length=64),
        max_length=100,
        required=False,
        help_text="IP addresses and networks that may send requests; empty: all.",
    )

    def validate_networks(self, networks: list[str]) -> list[str]:
        wrong = {
            index: ["This is not an IP address or network."]
            for index, text in enumerate(networks)
            if read_network(text) is None
        }
        if wrong:
            raise ValidationError(wrong)
        return networks


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


class AccountSerializer(serializers.Serializer[Any]):
    """Of an account and the role of the token's user in it."""

    name = serializers.CharField()
    kind = AccountKindField()
    label = serializers.CharField()
    description = serializers.CharField()
    colour = serializers.CharField()
    labels = StringMapField()
    state = serializers.ChoiceField(
        choices=STAGES,
        help_text="`frozen`: by a user; `expired`: its lifetime is over, and it will be deleted.",
    )
    protected = serializers.BooleanField()
    read_only = serializers.BooleanField()
    adaptive_indexes = serializers.BooleanField()
    distributes = serializers.BooleanField(help_text="Whether new tables are distributed over several nodes.")
    history_days = serializers.IntegerField()
    history_bytes = serializers.IntegerField(allow_null=True)
    consistency = ConsistencyField()
    max_staleness = serializers.IntegerField()
    shared_key_access = serializers.BooleanField()
    networks = serializers.ListField(child=serializers.CharField())
    created_at = InstantField()
    expires_at = InstantField(allow_null=True, help_text="When the account is frozen.")
    deleted_at = InstantField(allow_null=True, help_text="When an expired account will be deleted.")
    endpoint = serializers.CharField(
        help_text="URL for SDKs, on the host at which this request reached the server."
    )
    role = RoleField(help_text="Role of the token's user.")

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
    connection_string = serializers.CharField(
        help_text="Connection string for SDKs. It contains key 1: keep it secret."
    )

    def values(self, account: Account, role: Role) -> dict[str, Any]:
        found = super().values(account, role)
        key = accounts.encode_key(accounts.keys_of(account)[0])
        return {**found, "connection_string": connection_string(account.name, found["endpoint"], key)}


class CopyCheckParameters(QueryParameters):
    kind = AccountKindField(required=False, help_text="Of the copy; by default that of the account.")


class CopySerializer(StrictSerializer):
    name = AccountNameField(help_text="Of the new account.")
    kind = AccountKindField(required=False, help_text="Of the new account; by default that of the account.")
    skip = StrictBooleanField(default=False, help_text="Leave out what does not fit.")


class CopyFindingSerializer(serializers.Serializer[Any]):
    """Of a Finding."""

    reason = serializers.ChoiceField(choices=[misfit.name.lower() for misfit in Misfit])
    table = serializers.CharField()
    entities = serializers.IntegerField(help_text="How many; 0 if it is about the table itself.")
    example = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="PartitionKey and RowKey of one of the entities.",
    )

    def to_representation(self, instance: Finding) -> Any:
        return {
            "reason": instance.misfit.name.lower(),
            "table": instance.table,
            "entities": instance.number,
            "example": None if instance.example is None else list(instance.example),
        }


class CopyCheckSerializer(serializers.Serializer[Any]):
    items = CopyFindingSerializer(many=True)


class CopiedSerializer(serializers.Serializer[Any]):
    account = CreatedAccountSerializer()
    tables = serializers.IntegerField()
    entities = serializers.IntegerField()


class AccountListSerializer(PageSerializer):
    items = AccountSerializer(many=True)


class KeySerializer(serializers.Serializer[Any]):
    """Of a KeyState."""

    name = serializers.ChoiceField(choices=KEYS)
    value = serializers.SerializerMethodField(help_text="In base64.")
    since = InstantField(help_text="When the key was created.")
    last_used_at = InstantField(source="last.last", allow_null=True)
    requests_24h = serializers.IntegerField(source="uses", help_text="Requests in the last 24 hours.")

    def get_value(self, state: KeyState) -> str:
        return accounts.encode_key(accounts.keys_of(self.context["account"])[state.number - 1])


class KeyListSerializer(PageSerializer):
    items = KeySerializer(many=True)


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


class ConnectionStringSerializer(serializers.Serializer[Any]):
    form = serializers.ChoiceField(choices=[form.value for form in ConnectionFormat])
    key = serializers.ChoiceField(choices=KEYS)
    endpoint = serializers.CharField()
    text = serializers.CharField(help_text="The connection string, or the file or program that contains it.")
