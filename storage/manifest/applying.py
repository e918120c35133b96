"""Application of a manifest, with all changes of an account in one transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from storage.accounts import locking, removal
from storage.activity.activity import ChangedSince
from storage.activity.catalog_change import invalidating_catalogs
from storage.domain.access.actor import Actor
from storage.manifest import resources
from storage.manifest.declared import Action, Change, DeclaredAccount, Manifest
from storage.manifest.planning import plan, plan_account
from storage.manifest.resources import KINDS
from storage.models import Account


@dataclass(slots=True)
class PlanRefused(Exception):
    """Some of the planned changes would be refused; nothing was changed."""

    changes: Sequence[Change]


def apply(
    manifest: Manifest,
    *,
    by: Actor,
    prunes: bool = False,
    planned: Sequence[Change] | None = None,
    check: Callable[[Change], object] = lambda change: None,
) -> list[Change]:
    """Conform accounts to a manifest and return the changes made.

    Each account is changed in one transaction, in the order of names; concurrent requests on one account wait
    for each other. ``check`` raises the error for a change that the caller may not make. Raises PlanRefused,
    and ChangedSince if the changes differ from ``planned``; both are detected before the first change, unless
    an account changes meanwhile.
    """
    current = plan(manifest, prunes=prunes)
    if planned is not None and list(planned) != current:
        raise ChangedSince
    _check(current, check)
    done: list[Change] = []
    for name, declared in sorted(manifest.items()):
        expected = [it for it in current if it.account == name]
        if expected:
            done += _apply_account(
                name, declared, expected, by, check, prunes=prunes, is_fixed=planned is not None
            )
    return done


def _check(changes: Sequence[Change], check: Callable[[Change], object]) -> None:
    refused = [it for it in changes if it.problem]
    if refused:
        raise PlanRefused(refused)
    for change in changes:
        check(change)


def _apply_account(
    name: str,
    declared: DeclaredAccount | None,
    expected: Sequence[Change],
    by: Actor,
    check: Callable[[Change], object],
    *,
    prunes: bool,
    is_fixed: bool,
) -> list[Change]:
    if declared is None:  # a deletion may take several transactions
        changes = plan_account(name, declared, prunes=prunes)
        if is_fixed and changes != expected:
            raise ChangedSince
        _check(changes, check)  # another account may have the name now
        for _ in changes:
            removal.remove(name, with_tables=True, by=by)
        return changes
    with invalidating_catalogs():
        account = locking.lock_if_exists(name)
        changes = plan_account(name, declared, prunes=prunes)
        if changes != expected:  # another request has come first
            if is_fixed:
                raise ChangedSince
            _check(changes, check)
        for change in changes:
            account = _make(account, change, by)
    return changes


def _make(account: Account | None, change: Change, by: Actor) -> Account:
    if change.action is Action.CREATE and change.resource is resources.ACCOUNT.resource:
        return resources.ACCOUNT.create(change, by=by)
    assert account is not None  # the first change makes one
    KINDS[change.resource].make(account, change, by=by)
    return account
