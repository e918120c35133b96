"""Accounts and service properties as the management API shows and reads them."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.accounts import quotas, sealed_keys
from storage.accounts import service_properties as operations
from storage.accounts.connection_strings import connection_string
from storage.core.account_settings import SETTINGS, Setting
from storage.core.labels import LabelError
from storage.core.lifetimes import AccountStage
from storage.domain.access.addresses import read_network
from storage.domain.access.roles import Role
from storage.domain.requests.observed import KEY_NAMES
from storage.domain.service_properties.properties import DEFAULT_PROPERTIES, ServiceProperties, find_faults
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
        labels = super().to_internal_value(data)
        try:
            quotas.check_all_labels(labels)
        except LabelError as error:
            raise ValidationError(str(error)) from None
        return labels


class NetworksField(serializers.ListField):
    child = StrictCharField(max_length=64)

    def to_internal_value(self, data: Any) -> list[str]:
        networks: list[str] = super().to_internal_value(data)
        wrong = {
            index: ["This is not an IP address or network."]
            for index, text in enumerate(networks)
            if read_network(text) is None
        }
        if wrong:
            raise ValidationError(wrong)
        return networks


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
    """Build the serializer fields of settings, for a request or a response."""
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


class AccountSerializer(TypedSerializer):
    # fields of an account and the role of the token's user in it

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


class RetentionField(StrictIntegerField):
    def __init__(self, **options: Any) -> None:
        defaults = {"allow_null": True, "default": None, "min_value": 1, "max_value": 365}
        super().__init__(**defaults, help_text="Days; null keeps everything.", **options)


class LoggingSerializer(StrictSerializer):
    read = StrictBooleanField(default=False)
    write = StrictBooleanField(default=False)
    delete = StrictBooleanField(default=False)
    retention = RetentionField()


class MetricsSerializer(StrictSerializer):
    enabled = StrictBooleanField(default=False)
    include_apis = StrictBooleanField(default=False)
    retention = RetentionField()


class CorsRuleSerializer(StrictSerializer):
    origins = serializers.ListField(child=StrictCharField(max_length=256), min_length=1, max_length=64)
    methods = serializers.ListField(child=StrictCharField(max_length=16), min_length=1, max_length=8)
    allowed_headers = serializers.ListField(
        child=StrictCharField(max_length=256), default=list, max_length=66
    )
    exposed_headers = serializers.ListField(
        child=StrictCharField(max_length=256), default=list, max_length=66
    )
    max_age = StrictIntegerField(min_value=0, max_value=2**31 - 1, help_text="Seconds.")


class ServicePropertiesSerializer(StrictSerializer):
    """All service properties; they replace the existing ones."""

    logging = LoggingSerializer()
    hour_metrics = MetricsSerializer()
    minute_metrics = MetricsSerializer()
    cors = CorsRuleSerializer(many=True, max_length=5)

    def validate(self, attrs: dict[str, Any]) -> Any:
        """Return the properties under the name ``properties``; serializers validate to a dict."""
        return {"properties": check_properties(attrs)}


def check_properties(attrs: Mapping[str, Any]) -> ServiceProperties:
    """Return properties, with defaults for missing ones; raise a ValidationError for invalid values."""
    properties = operations.read({**operations.write(DEFAULT_PROPERTIES), **attrs})
    errors: dict[str, Any] = {}
    for fault in find_faults(properties):
        within: Any = errors
        for step in fault.where[:-1]:
            within = within.setdefault(step, {})
        within[fault.where[-1]] = [fault.error.text]
    if errors:
        raise ValidationError(errors)
    return properties
