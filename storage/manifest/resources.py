"""Resource kinds of manifests: reading their stored fields, validating changes and making them.

Stored and declared fields have the same form, so that they can be compared.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, ClassVar, Final

from django.utils import timezone

from storage.access import policies
from storage.accounts import account_settings, accounts, removal, service_properties
from storage.accounts.accounts import NewAccount
from storage.accounts.refusals import AccountError, AccountKindIsFixed
from storage.core import lifetimes, registry
from storage.core.account_settings import SETTINGS
from storage.core.rehearsal_sets import RehearsalSets
from storage.core.subject import Hook
from storage.domain.access.actor import Actor
from storage.domain.access.policies import AccessPolicy, SignedIdentifier, check_policies
from storage.domain.access.roles import Capability, Role, name_role
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import check_property_name, fold_table_name
from storage.manifest.declared import Action, Change, Fields, Resource
from storage.models import Account, Table
from storage.notices import rules, webhooks
from storage.notices.webhooks import WebhookFields
from storage.people import members
from storage.people.members import LastOwner, Person
from storage.snapshots import snapshots
from storage.snapshots.schedule import Schedule
from storage.tables import indexes, tables

AT_CREATION: Final = ("label", "description", "colour", "labels", "expires_at")


class ResourceKind(ABC):
    """Resource kind that a manifest declares."""

    resource: ClassVar[Resource]
    capability: ClassVar[Capability]  # the capability in the account that changing it requires
    has_defaults: ClassVar[bool] = False  # whether a new account has it too
    is_pruned: ClassVar[bool] = True  # whether items that a section leaves out can be deleted
    is_write: ClassVar[bool] = False  # whether a read-only account refuses to change it

    @abstractmethod
    def stored(self, account: Account) -> Mapping[str, Fields]:
        """Return the fields of an account's items by name; a kind with a single item uses the empty name."""

    @abstractmethod
    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        """Apply a change, in the caller's transaction."""

    def identify(self, kind: AccountKind, name: str) -> str:
        """Return the identity of a name in an account of this kind, equal for its spellings; may raise StorageError."""
        return name

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:  # noqa: B027
        """Raise Refused or StorageError if a change would be refused; the account may not exist yet."""


class TableResourceKind(ResourceKind):
    """Resource kind that belongs to tables."""

    def stored(self, account: Account) -> Mapping[str, Fields]:
        """Return no fields, as they belong to tables."""
        return {}

    @abstractmethod
    def stored_by_table(self, account: Account) -> Mapping[str, Mapping[str, Fields]]:
        """Return the stored fields by folded table name and item name."""


class AccountResource(ResourceKind):
    resource, capability = Resource.ACCOUNT, Capability.OWN
    has_defaults, is_pruned = True, False

    def stored(self, account: Account) -> Mapping[str, Fields]:
        settings = {name: getattr(account, name) for name in SETTINGS}
        return {"": {"kind": AccountKind(account.kind), **settings}}

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:
        if change.action is Action.DELETE and account is not None:
            removal.request(account, with_tables=True)
        fields = dict(change.after)
        if "kind" in change.before:
            raise AccountKindIsFixed(
                Reason.ACCOUNT_KIND_IS_FIXED,
                account=change.account,
                kind=change.before["kind"],
                wanted=fields["kind"],
            )
        fields.pop("kind", None)
        account_settings.check(fields)
        end: datetime | None = fields.get("expires_at")
        now = timezone.now()
        if end is not None and not now < end <= now + lifetimes.LONGEST:
            raise AccountError(Reason.LIFETIME)
        if account is not None:
            account_settings.require_lifetime(account, fields)

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        account_settings.change(account, by=by, **change.after)

    def create(self, change: Change, *, by: Actor) -> Account:
        """Create an account; a second change applies its other settings."""
        new = NewAccount(
            kind=AccountKind(change.after["kind"]),
            **{name: change.after[name] for name in AT_CREATION if name in change.after},
        )
        return accounts.add(change.account, new, by=by)


class ServicePropertiesResource(ResourceKind):
    resource, capability = Resource.SERVICE_PROPERTIES, Capability.CONFIGURE
    has_defaults, is_pruned, is_write = True, False, True

    def stored(self, account: Account) -> Mapping[str, Fields]:
        return {"": service_properties.write(service_properties.for_account(account))}

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:
        accounts.require_storage(account or accounts.unsaved(change.account, kind))

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        def update(former: Any) -> Any:
            return service_properties.read({**service_properties.write(former), **change.after})

        service_properties.replace(account, update, by=by)


class MemberResource(ResourceKind):
    resource, capability = Resource.MEMBER, Capability.GRANT

    def stored(self, account: Account) -> Mapping[str, Fields]:
        found = members.members(account)
        return {it.user.get_username(): {"role": name_role(it.role)} for it in found}

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:
        self._person(change)

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        person = self._person(change)
        try:
            if change.action is Action.DELETE:
                members.remove(account, person, by=by)
            else:
                members.set_role(account, person, Role[change.after["role"].upper()], by=by)
        except LastOwner:
            raise AccountError(Reason.LAST_OWNER, user=person.username, account=account.name) from None

    def _person(self, change: Change) -> Person:
        found = members.find_person(change.name)
        if found is None:
            raise AccountError(Reason.NO_USER, user=change.name)
        return found


class TableResource(ResourceKind):
    resource, capability = Resource.TABLE, Capability.MANAGE_TABLES
    is_write = True

    def identify(self, kind: AccountKind, name: str) -> str:
        return fold_table_name(name, kind)

    def stored(self, account: Account) -> Mapping[str, Fields]:
        return {
            it.name: {"description": it.description, "tags": it.tags, "throughput": it.throughput}
            for it in tables.listed(account)
        }

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:
        fold_table_name(change.name, kind)
        if change.action is Action.DELETE and account is not None and account.protected:
            raise AccountError(Reason.ACCOUNT_PROTECTED, account=account.name)
        if change.after.get("throughput"):
            tables.check_throughput(kind)

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        fields = dict(change.after)
        match change.action:
            case Action.CREATE:
                throughput = fields.pop("throughput", 0)
                table = tables.create(account, change.name, by=by, **fields)
                table.account = account
                if throughput:
                    tables.change(table, by=by, throughput=throughput)
            case Action.CHANGE:
                tables.change(_table(account, change.name), by=by, **fields)
            case Action.DELETE:
                tables.delete(account, change.name, by=by, keep=tables.DELETED_TABLE_RETENTION)


class PoliciesResource(TableResourceKind):
    """Policies of a table as one resource, replaced as a whole."""

    resource, capability = Resource.POLICIES, Capability.MANAGE_ACCESS
    is_write = True

    def stored_by_table(self, account: Account) -> Mapping[str, Mapping[str, Fields]]:
        listed = tables.listed(account)
        written = policies.written(listed)
        return {
            table.folded_name: {it.identifier: write_policy(it) for it in policies.read(written[table.pk])}
            for table in listed
        }

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:
        accounts.require_storage(account or accounts.unsaved(change.account, kind))
        table = None if account is None else tables.find(account, fold_table_name(change.table, kind))
        check_policies(_replaced([] if table is None else policies.stored(table), change.after))

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        table = _table(account, change.table)
        policies.replace(table, _replaced(policies.stored(table), change.after), by=by)


def write_policy(identifier: SignedIdentifier) -> dict[str, str]:
    """Serialize the terms of a policy, without absent or empty fields, which are left to the tokens."""
    policy = identifier.policy or AccessPolicy()
    return {name: value for name, value in asdict(policy).items() if value}


def _replaced(former: list[SignedIdentifier], changed: Fields) -> list[SignedIdentifier]:
    kept = {it.identifier: it for it in former}
    for name, fields in changed.items():
        if fields is None:
            kept.pop(name, None)
        else:
            kept[name] = SignedIdentifier(name, AccessPolicy(**fields))
    return list(kept.values())


class IndexResource(TableResourceKind):
    """Index requested by users; a declared index that the server created is kept, and never deleted by a manifest."""

    resource, capability = Resource.INDEX, Capability.MANAGE_TABLES
    is_write = True

    def stored_by_table(self, account: Account) -> Mapping[str, Mapping[str, Fields]]:
        asked_for = indexes.asked_for(account)
        return {
            table.folded_name: {name: {} for name in asked_for.get(table.pk, ())}
            for table in tables.listed(account)
        }

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:
        check_property_name(change.name)

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        do = indexes.drop if change.action is Action.DELETE else indexes.add
        do(_table(account, change.table), change.name, by=by)


class WebhookResource(ResourceKind):
    resource, capability = Resource.WEBHOOK, Capability.MANAGE_ACCESS

    def stored(self, account: Account) -> Mapping[str, Fields]:
        return {
            it.name: {"url": it.url, "kinds": sorted(it.kinds), "enabled": it.enabled}
            for it in webhooks.for_account(account)
        }

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:
        if change.action is not Action.DELETE:
            former = {} if account is None else self.stored(account).get(change.name, {})
            owner = account or accounts.unsaved(change.account, kind)
            webhooks.check(owner, WebhookFields(change.name, **{"url": "", **former, **change.after}))

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        webhook = webhooks.for_account(account).filter(name=change.name).first()
        if change.action is Action.DELETE:
            if webhook is not None:
                webhooks.remove(webhook, by=by)
        elif webhook is None:
            webhooks.create(account, WebhookFields(change.name, **change.after), by=by)
        else:
            former = self.stored(account)[change.name]
            webhooks.change(webhook, WebhookFields(change.name, **{**former, **change.after}), by=by)


class NoticeRuleResource(ResourceKind):
    resource, capability = Resource.NOTICE_RULE, Capability.CONFIGURE
    has_defaults, is_pruned = True, False

    def stored(self, account: Account) -> Mapping[str, Fields]:
        found = rules.of_new_account() if account.pk is None else rules.for_account(account)
        return {str(it.kind): {"enabled": it.is_on, "threshold": it.threshold} for it in found}

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:
        rules.check(registry.notice_kinds()[change.name], change.after.get("threshold"))

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        kind = registry.notice_kinds()[change.name]
        fields = {**self.stored(account)[change.name], **change.after}
        bounds = kind.condition.threshold
        is_default = bounds is not None and fields["threshold"] == bounds.default
        threshold = None if is_default else fields["threshold"]
        rules.change(account, kind, is_on=fields["enabled"], threshold=threshold, by=by)


class SnapshotScheduleResource(ResourceKind):
    resource, capability = Resource.SNAPSHOT_SCHEDULE, Capability.MANAGE_TABLES

    def stored(self, account: Account) -> Mapping[str, Fields]:
        found = snapshots.scheduled(account)
        return {} if found is None else {"": asdict(found)}

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        former = self.stored(account).get("", {})
        wanted = None if change.action is Action.DELETE else Schedule(**{**former, **change.after})
        snapshots.schedule(account, wanted, by=by)


class RehearsalSetResource(ResourceKind):
    resource, capability = Resource.REHEARSAL_SET, Capability.MANAGE_TABLES

    def stored(self, account: Account) -> Mapping[str, Fields]:
        sets = rehearsal_sets()
        return {} if sets is None else sets.stored(account)

    def check(self, account: Account | None, kind: AccountKind, change: Change) -> None:
        sets = rehearsal_sets()
        if sets is not None and change.action is not Action.DELETE:
            sets.check_name(change.name)

    def make(self, account: Account, change: Change, *, by: Actor) -> None:
        sets = rehearsal_sets()
        assert sets is not None  # else a manifest has no section of them
        if change.action is Action.DELETE:
            sets.delete(account, change.name, by=by)
        else:
            former = self.stored(account).get(change.name, {})
            sets.save(account, change.name, {**former, **change.after}, by=by)


def rehearsal_sets() -> RehearsalSets | None:
    """Return the sets of rules for rehearsals; None while their subject is left out."""
    return next((find() for find in registry.hooks(Hook.REHEARSAL_SETS)), None)


def _table(account: Account, name: str) -> Table:
    found = tables.get(account, name)
    found.account = account
    return found


ACCOUNT: Final = AccountResource()
SERVICE_PROPERTIES: Final = ServicePropertiesResource()
MEMBER: Final = MemberResource()
TABLE: Final = TableResource()
POLICIES: Final = PoliciesResource()
INDEX: Final = IndexResource()
WEBHOOK: Final = WebhookResource()
NOTICE_RULE: Final = NoticeRuleResource()
SNAPSHOT_SCHEDULE: Final = SnapshotScheduleResource()
REHEARSAL_SET: Final = RehearsalSetResource()
KINDS: Final[Mapping[Resource, ResourceKind]] = {
    it.resource: it
    for it in (
        ACCOUNT, SERVICE_PROPERTIES, MEMBER, TABLE, POLICIES, INDEX, WEBHOOK, NOTICE_RULE, SNAPSHOT_SCHEDULE,
        REHEARSAL_SET,
    )
}  # fmt: skip
