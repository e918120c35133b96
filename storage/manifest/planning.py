"""Planning of a manifest: the changes from the accounts' actual state."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from storage.accounts import accounts
from storage.domain.access.roles import Role
from storage.domain.errors import InsufficientAccountPermissions, StorageError, TableAlreadyExists
from storage.domain.refusals import Reason, Refused
from storage.domain.values.kinds import AccountKind
from storage.manifest import resources
from storage.manifest.declared import (
    Action,
    Change,
    DeclaredAccount,
    DeclaredTable,
    Fields,
    Manifest,
    Resource,
    Section,
)
from storage.manifest.resources import KINDS, ResourceKind, TableResourceKind
from storage.models import Account
from storage.people import members
from storage.tables import tables

_OWNER = Role.OWNER.name.lower()


def plan(manifest: Manifest, *, prunes: bool = False) -> list[Change]:
    """Return the changes that a manifest requires, by account; ``prunes`` deletes undeclared items of its sections."""
    return [
        change
        for name, declared in sorted(manifest.items())
        for change in plan_account(name, declared, prunes=prunes)
    ]


def plan_account(name: str, declared: DeclaredAccount | None, *, prunes: bool) -> list[Change]:
    """Return the changes of an account in order of execution."""
    account = accounts.find(name)
    if declared is None:
        return [] if account is None else [_checked(account, _deletion(account), AccountKind(account.kind))]
    wanted_kind = declared.kind or AccountKind.STORAGE
    kind = wanted_kind if account is None else AccountKind(account.kind)
    differences = list(_Comparison(name, account, kind, prunes=prunes).changes(declared))
    stays_read_only = account is not None and account.read_only and declared.settings.get("read_only", True)
    changes = [
        _checked(account, change, kind, is_read_only=stays_read_only)
        for change in _without_owner(account, differences)
    ]
    # a read-only account refuses the other changes
    if declared.settings.get("read_only"):
        changes.sort(key=lambda it: it.resource is resources.ACCOUNT.resource and it.action is Action.CHANGE)
    return changes


def _deletion(account: Account) -> Change:
    return Change(
        Action.DELETE,
        resources.ACCOUNT.resource,
        account.name,
        before={"tables": tables.counts([account.pk]).get(account.pk, 0)},
    )


class _Comparison:
    """Comparison of an account with its declaration."""

    def __init__(self, name: str, account: Account | None, kind: AccountKind, *, prunes: bool) -> None:
        self._exists = account is not None
        self._account = account or accounts.unsaved(name, kind)
        self._kind, self._prunes = kind, prunes
        self._of_tables: dict[Resource, Mapping[str, Mapping[str, Fields]]] = {}

    def changes(self, declared: DeclaredAccount) -> Iterator[Change]:
        yield from self._account_changes(declared)
        yield from self._compare(resources.SERVICE_PROPERTIES, {"": declared.service_properties})
        yield from sorted(self._compare(resources.MEMBER, declared.members), key=_owners_first)
        yield from self._tables(declared.tables)
        yield from self._compare(resources.WEBHOOK, declared.webhooks)
        yield from self._compare(resources.NOTICE_RULE, declared.notice_rules)
        yield from self._compare(resources.SNAPSHOT_SCHEDULE, declared.snapshot_schedule)
        yield from self._compare(resources.REHEARSAL_SET, declared.rehearsal_sets)

    def _account_changes(self, declared: DeclaredAccount) -> Iterator[Change]:
        settings = declared.settings
        if self._exists:
            kind = {} if declared.kind is None else {"kind": declared.kind}
            yield from self._compare(resources.ACCOUNT, {"": {**kind, **settings}})
            return
        at_once = {name: value for name, value in settings.items() if name in resources.AT_CREATION}
        fields = {"kind": self._kind, **at_once}
        yield Change(Action.CREATE, resources.ACCOUNT.resource, self._account.name, after=fields)
        later = {name: value for name, value in settings.items() if name not in at_once}
        yield from self._compare(resources.ACCOUNT, {"": later})

    def _tables(self, section: Mapping[str, DeclaredTable | None] | None) -> Iterator[Change]:
        if section is None:
            return
        yield from self._compare(
            resources.TABLE, {name: None if it is None else it.fields for name, it in section.items()}
        )
        for name, declared in section.items():
            if declared is not None:
                yield from self._policies(name, declared.policies)
                if declared.indexes is not None:
                    yield from self._compare(resources.INDEX, {it: {} for it in declared.indexes}, name)

    def _policies(self, table: str, section: Section | None) -> Iterator[Change]:
        """Yield one change for all policies of a table, as they are replaced together."""
        if section is None:
            return
        stored = self._stored(resources.POLICIES, table)
        declared = {**dict.fromkeys(stored if self._prunes else ()), **section}
        changed = [name for name, fields in declared.items() if stored.get(name) != fields]
        if changed:
            before = {name: stored.get(name) for name in changed}
            after = {name: declared[name] for name in changed}
            resource = resources.POLICIES.resource
            yield Change(Action.CHANGE, resource, self._account.name, table, before=before, after=after)

    def _compare(self, kind: ResourceKind, section: Section | None, table: str = "") -> Iterator[Change]:
        """Yield the changes of one resource kind, deletions first."""
        if section is None:
            return
        stored = self._stored(kind, table)
        names = {self._identify(kind, name): name for name in stored}

        def change(action: Action, name: str, before: Fields, after: Fields, problem: str = "") -> Change:
            return Change(action, kind.resource, self._account.name, table, name, before, after, problem)

        seen: set[str] = set()
        others: list[Change] = []
        for name, fields in section.items():
            identity = self._identify(kind, name)
            stored_name = names.get(identity)
            action, before, after = _difference(None if stored_name is None else stored[stored_name], fields)
            if identity in seen:  # two names of a table may differ in letter case only
                others.append(change(Action.CREATE, name, {}, after, TableAlreadyExists.message))
            elif action is Action.DELETE:
                yield change(action, name, before, after)
            elif action is not None:
                others.append(change(action, name, before, after))
            seen.add(identity)
        for identity in sorted(names.keys() - seen) if self._prunes and kind.is_pruned else ():
            yield change(Action.DELETE, names[identity], stored[names[identity]], {})
        yield from others

    def _stored(self, kind: ResourceKind, table: str) -> Mapping[str, Fields]:
        """Return the stored fields of a resource kind; empty for a table that does not exist yet."""
        if not self._exists and not kind.has_defaults:
            return {}
        if not isinstance(kind, TableResourceKind):
            return kind.stored(self._account)
        if kind.resource not in self._of_tables:
            self._of_tables[kind.resource] = kind.stored_by_table(self._account)
        return self._of_tables[kind.resource].get(self._identify(resources.TABLE, table), {})

    def _identify(self, kind: ResourceKind, name: str) -> str:
        try:
            return kind.identify(self._kind, name)
        except StorageError:
            return name  # the check of the change refuses it


def _difference(stored: Fields | None, declared: Fields | None) -> tuple[Action | None, Fields, Fields]:
    if declared is None:
        return (None, {}, {}) if stored is None else (Action.DELETE, stored, {})
    if stored is None:
        return Action.CREATE, {}, declared
    after = {name: value for name, value in declared.items() if stored.get(name) != value}
    return (Action.CHANGE if after else None), {name: stored.get(name) for name in after}, after


def _owners_first(change: Change) -> tuple[bool, bool]:
    return change.action is Action.DELETE, change.after.get("role") != _OWNER


def _without_owner(account: Account | None, changes: list[Change]) -> Iterator[Change]:
    """Yield the changes; those that would leave an account without an owner are marked as refused."""
    listed = [] if account is None else members.members(account)
    owners = {it.user.get_username(): it.user for it in listed if it.role == Role.OWNER}
    roles = {it.name: it.after.get("role") for it in changes if it.resource is resources.MEMBER.resource}
    stay = [user for name, user in owners.items() if name not in roles]
    come = [members.find_person(name) for name, role in roles.items() if role == _OWNER]
    # one who is disabled does not count
    is_ownerless = not any(user.is_active for user in (*stay, *come) if user is not None)
    for change in changes:
        if is_ownerless and change.resource is resources.MEMBER.resource and change.name in owners:
            refused = Reason.LAST_OWNER.of(user=change.name, account=change.account)
            yield replace(change, problem=str(refused))
        else:
            yield change


def _checked(
    account: Account | None, change: Change, kind: AccountKind, *, is_read_only: bool = False
) -> Change:
    """Return a change together with the reason why it would be refused, if any."""
    if change.problem:
        return change
    try:
        if is_read_only and KINDS[change.resource].is_write:
            raise InsufficientAccountPermissions
        KINDS[change.resource].check(account, kind, change)
    except Refused as refused:
        return replace(change, problem=str(refused))
    except StorageError as error:
        return replace(change, problem=error.text)
    return change
