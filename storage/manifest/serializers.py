"""Serializers of manifests, planned changes and declared accounts."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.access.serializers import AccessPolicySerializer, check_policies
from storage.accounts import account_settings
from storage.accounts.serializers import (
    AccountKindField,
    CorsRuleSerializer,
    LoggingSerializer,
    MetricsSerializer,
    check_properties,
    setting_fields,
)
from storage.core.account_settings import SETTINGS
from storage.domain.refusals import Refused
from storage.domain.values.names import is_account_name
from storage.manifest import resources
from storage.manifest.declared import (
    Change,
    DeclaredAccount,
    DeclaredTable,
    Fields,
    Manifest,
    Section,
)
from storage.notices.kinds import kinds_of_accounts
from storage.notices.serializers import KINDS
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    ROLES,
    QueryParameters,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictFloatField,
    StrictSerializer,
)
from storage.snapshots.serializers import NewScheduleSerializer
from storage.tables.serializers import TableChangeSerializer

_NONE: Final = "none"  # for null, which TOML cannot write
_ABSENT: Final = "absent"
_UNPRINTABLE: Final = "The name has characters that are not allowed."
_TWICE: Final = "The same user is named twice, in different letter cases."


class DeletableSerializer(StrictSerializer):
    """Base of items that a manifest can also declare to be absent."""

    absent = StrictBooleanField(required=False, help_text="True, as the only member: delete it if it exists.")

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get(_ABSENT) is True:
            if len(data) > 1:
                raise ValidationError({_ABSENT: ["What is absent has no other members."]})
            return {_ABSENT: True}
        return super().to_internal_value(data)


class DeclaredPolicySerializer(DeletableSerializer, AccessPolicySerializer):
    pass


class DeclaredTableSerializer(DeletableSerializer, TableChangeSerializer):
    policies = serializers.DictField(
        child=DeclaredPolicySerializer(), required=False, help_text="Stored access policies by their ids."
    )
    indexes = serializers.ListField(
        child=StrictCharField(max_length=255), required=False, help_text="Properties that have an index."
    )

    def validate_policies(self, found: dict[str, Any]) -> dict[str, Any]:
        check_policies(
            {name: fields for name, it in found.items() if (fields := _unless_absent(it)) is not None}
        )
        return found


class DeclaredWebhookSerializer(DeletableSerializer):
    url = StrictCharField(max_length=2000)
    kinds = serializers.ListField(
        child=StrictChoiceField(choices=KINDS), required=False, help_text="Empty: all kinds."
    )
    enabled = StrictBooleanField(required=False)


class DeclaredRuleSerializer(StrictSerializer):
    enabled = StrictBooleanField(required=False)
    threshold = StrictFloatField(required=False)


class DeclaredScheduleSerializer(DeletableSerializer, NewScheduleSerializer):
    pass


class DeclaredRehearsalSetSerializer(DeletableSerializer):
    description = StrictCharField(required=False, allow_blank=True, max_length=2000)
    rules = serializers.ListField(
        child=serializers.DictField(), help_text="As `PUT rehearsal-sets/{name}` takes them."
    )

    def validate_rules(self, rules: list[Any]) -> list[dict[str, Any]]:
        sets = resources.rehearsal_sets()
        assert sets is not None
        try:
            return sets.read_rules(rules)
        except Refused as refused:
            raise ValidationError(str(refused)) from None


class DeclaredServicePropertiesSerializer(StrictSerializer):
    """Service properties in a manifest; each declared member replaces the present one."""

    logging = LoggingSerializer(required=False)
    hour_metrics = MetricsSerializer(required=False)
    minute_metrics = MetricsSerializer(required=False)
    cors = CorsRuleSerializer(many=True, max_length=5, required=False)

    def validate(self, attrs: dict[str, Any]) -> Any:
        check_properties(attrs)
        return attrs


class DeclaredAccountSerializer(DeletableSerializer):
    """Declaration of an account; omitted fields stay unchanged."""

    kind = AccountKindField(required=False, help_text="Of a new account; it cannot be changed later.")
    service_properties = DeclaredServicePropertiesSerializer(required=False)
    members = serializers.DictField(
        child=StrictChoiceField(choices=[*ROLES, _NONE]),
        required=False,
        help_text="Roles by the names of users; `none` removes a member.",
    )
    notice_rules = serializers.DictField(child=DeclaredRuleSerializer(), required=False)
    snapshot_schedule = DeclaredScheduleSerializer(required=False)
    tables = serializers.DictField(child=DeclaredTableSerializer(), required=False)
    webhooks = serializers.DictField(child=DeclaredWebhookSerializer(), required=False)

    def get_fields(self) -> dict[str, Any]:
        sets = serializers.DictField(
            child=DeclaredRehearsalSetSerializer(), required=False, help_text="Sets of rules for rehearsals."
        )
        has_sets = resources.rehearsal_sets() is not None
        return {
            **setting_fields(SETTINGS),
            **super().get_fields(),
            **({"rehearsal_sets": sets} if has_sets else {}),
        }

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            data = {
                name: None if value == _NONE and name in SETTINGS and SETTINGS[name].is_nullable else value
                for name, value in data.items()
            }
        return super().to_internal_value(data)

    def validate_members(self, members: dict[str, Any]) -> dict[str, Any]:
        numbers = Counter(map(str.lower, members))
        return _check_names(
            members,
            lambda name: (
                _UNPRINTABLE if not name.isprintable() else _TWICE if numbers[name.lower()] > 1 else ""
            ),
        )

    def validate_notice_rules(self, found: dict[str, Any]) -> dict[str, Any]:
        known = [str(kind) for kind in kinds_of_accounts()]
        return _check_names(found, lambda name: "" if name in known else "There is no such kind of notice.")

    def validate_webhooks(self, webhooks: dict[str, Any]) -> dict[str, Any]:
        return _check_names(
            webhooks,
            lambda name: (
                _UNPRINTABLE
                if "\0" in name
                else ""
                if 0 < len(name) <= 64
                else "The name is too long or empty."
            ),
        )


def _check_names(found: dict[str, Any], fault: Callable[[str], str]) -> dict[str, Any]:
    errors = {name: [text] for name in found if (text := fault(name))}
    if errors:
        raise ValidationError(errors)
    return found


class ManifestSerializer(StrictSerializer):
    accounts = serializers.DictField(
        child=DeclaredAccountSerializer(), help_text="Accounts by their names: the whole manifest."
    )

    def validate_accounts(self, accounts: dict[str, Any]) -> dict[str, Any]:
        return _check_names(
            accounts,
            lambda name: (
                "" if is_account_name(name) else "An account name has 3 to 24 lower-case letters and digits."
            ),
        )

    def validate(self, attrs: dict[str, Any]) -> Any:
        """Return the validated Manifest under the key ``manifest``, as serializers must return a dict."""
        return {"manifest": {name: _read_account(data) for name, data in attrs["accounts"].items()}}


def read_manifest(data: Any) -> Manifest:
    """Parse a manifest in JSON; raises a ValidationError."""
    serializer = ManifestSerializer(data=data)
    serializer.is_valid(raise_exception=True)
    manifest: Manifest = serializer.validated_data["manifest"]
    return manifest


def _read_account(data: Mapping[str, Any]) -> DeclaredAccount | None:
    if data.get(_ABSENT):
        return None
    schedule = data.get("snapshot_schedule")
    return DeclaredAccount(
        kind=data.get("kind"),
        settings={name: value for name, value in data.items() if name in SETTINGS},
        service_properties=data.get("service_properties", {}),
        members=_section(data, "members", _read_role, str.lower),
        tables=_section(data, "tables", _read_table),
        webhooks=_section(data, "webhooks", _read_webhook),
        notice_rules=data.get("notice_rules"),
        rehearsal_sets=_section(data, "rehearsal_sets", _unless_absent),
        snapshot_schedule=None if schedule is None else {"": _unless_absent(schedule)},
    )


def _section(
    data: Mapping[str, Any],
    name: str,
    read: Callable[[Any], Any],
    read_name: Callable[[str], str] = str,
) -> dict[str, Any] | None:
    items = data.get(name)
    return None if items is None else {read_name(it): read(item) for it, item in items.items()}


def _unless_absent(item: Fields) -> Fields | None:
    return None if item.get(_ABSENT) else {name: value for name, value in item.items() if name != _ABSENT}


def _read_role(role: str) -> Fields | None:
    return None if role == _NONE else {"role": role}


def _read_webhook(item: Fields) -> Fields | None:
    found = _unless_absent(item)
    return found and {**found, **({"kinds": sorted(found["kinds"])} if "kinds" in found else {})}


def _read_table(item: Fields) -> DeclaredTable | None:
    if item.get(_ABSENT):
        return None
    fields = {name: value for name, value in item.items() if name in ("description", "tags", "throughput")}
    policies = item.get("policies")
    return DeclaredTable(fields, None if policies is None else _read_policies(policies), item.get("indexes"))


def _read_policies(items: Mapping[str, Fields]) -> Section:
    policies = {name: _unless_absent(item) for name, item in items.items()}
    return {
        name: None if it is None else {field: value for field, value in it.items() if value}
        for name, it in policies.items()
    }


class PlanParameters(QueryParameters):
    prune = serializers.BooleanField(
        default=False,
        help_text="Delete tables, policies, indexes, members, webhooks, sets of rules and a schedule that the manifest"
        " leaves out of a section it has. Accounts are only deleted by `absent`.",
    )


class ManifestParameters(QueryParameters):
    account = serializers.ListField(
        child=serializers.CharField(max_length=24),
        default=list,
        help_text="Only this account; can be repeated. By default all that the token's user maintains.",
    )


class PlannedChangeSerializer(TypedSerializer):
    of = Change

    def to_representation(self, instance: Change) -> Any:
        before, after = _write_fields(instance.before), _write_fields(instance.after)
        return super().to_representation(replace(instance, before=before, after=after))


def _write_fields(fields: Fields) -> dict[str, Any]:
    written = account_settings.to_json(fields)
    if "url" in written:  # often contains a token
        written["url"] = _without_secrets(written["url"])
    return written


def _without_secrets(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:  # webhooks cannot have such a URL
        return "…"
    return f"{parts.scheme}://{parts.hostname}/…"


class PlanSerializer(TypedSerializer):
    changes: list[PlannedChangeSerializer]


def write_plan(changes: Iterable[Change]) -> dict[str, Any]:
    """Convert changes to the API's response."""
    found: dict[str, Any] = PlanSerializer({"changes": list(changes)}).data
    return found
