"""The stored access policies of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, Prefetch

from storage.access.subject import AccessVerb
from storage.accounts import accounts
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.domain.access.actor import SERVER, Actor
from storage.domain.access.policies import AccessPolicy, SignedIdentifier, check_policies
from storage.domain.errors import ResourceNotFound
from storage.models import Account, Activity, StoredAccessPolicy, Table
from storage.tables import tables


def stored(table: Table) -> list[SignedIdentifier]:
    """Return the policies of a table in the order in which they were set."""
    return [identifier(policy) for policy in table.policies.order_by("place")]


def stored_by_name(account: Account, folded_name: str) -> list[SignedIdentifier]:
    """Get Table ACL; raises ResourceNotFound."""
    return stored(_find(account, folded_name))


def _find(account: Account, folded_name: str) -> Table:
    table = tables.find(account, folded_name)
    if table is None:
        raise ResourceNotFound
    table.account = account
    return table


def written(tables: Sequence[Table]) -> dict[int, list[dict[str, Any]]]:
    """Return the policies of tables by table id, in the form of ``write``."""
    by_table: dict[int, list[dict[str, Any]]] = {table.pk: [] for table in tables}
    for policy in StoredAccessPolicy.objects.filter(table__in=tables).order_by("table", "place"):
        by_table[policy.table_id] += write([identifier(policy)])
    return by_table


def tables_with_policies(account: Account, *, except_table: Table) -> list[Table]:
    """Return up to 500 other tables that have policies, by name, with the number as ``policy_count``."""
    own = Table.objects.existing().filter(account=account).exclude(pk=except_table.pk)
    counted = own.annotate(policy_count=Count("policies")).filter(policy_count__gt=0)
    return list(counted.order_by("folded_name")[:500])


def first_tables(account: Account, top: int) -> list[Table]:
    """Return the first tables that have policies, by name, with the policies in their order."""
    having = Table.objects.existing().filter(account=account, policies__isnull=False).distinct()
    ordered = Prefetch("policies", StoredAccessPolicy.objects.order_by("place"))
    return list(having.order_by("folded_name").prefetch_related(ordered)[:top])


def expired(account: Account, now: datetime) -> list[StoredAccessPolicy]:
    """Return the expired policies of an account by table, with their tables."""
    # instants are texts of one form, in UTC
    over = StoredAccessPolicy.objects.filter(
        expiry__gt="", expiry__lt=f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    )
    own = over.filter(table__in=Table.objects.existing().filter(account=account))
    return list(own.select_related("table").order_by("table__folded_name", "place"))


def as_of(table: Table, moment: datetime) -> list[SignedIdentifier] | None:
    """Return the policies that a table had at a moment; None if it has the same ones since then."""
    changes = Activity.objects.filter(
        account_id=table.account_id, table_id=table.pk, verb=AccessVerb.POLICIES_SET, at__gt=moment
    )
    first = changes.order_by("at", "pk").first()
    return None if first is None else read(first.before or [])


def replace_by_name(
    account: Account, folded_name: str, identifiers: Sequence[SignedIdentifier], *, by: Actor = SERVER
) -> Activity | None:
    """Replace the policies of a table (Set Table ACL); invalid policies are refused before a missing table."""
    _check(account, folded_name, identifiers)
    return replace(_find(account, folded_name), identifiers, by=by)


def _check(account: Account, folded_name: str, identifiers: Sequence[SignedIdentifier]) -> None:
    accounts.require_storage(account)
    check_policies(identifiers)


def replace(
    table: Table,
    identifiers: Sequence[SignedIdentifier],
    *,
    by: Actor = SERVER,
    seen: Sequence[SignedIdentifier] | None = None,
    undoes: Activity | None = None,
) -> Activity | None:
    """Replace all policies of a table, effective from the next request on; return None if nothing changed.

    Raises MethodNotAllowed in an account of the kind cosmos, and ChangedSince if the stored policies are not those that
    the caller has ``seen``, or that ``undoes`` left.
    """
    account = table.account
    _check(account, table.folded_name, identifiers)
    if undoes is None and stored(table) == list(identifiers):
        return None  # without a change, no catalog needs to be invalidated
    with invalidating_catalogs():
        accounts.writable(account)
        if not Table.objects.select_for_update().filter(pk=table.pk, deleted_at=None).exists():
            raise ResourceNotFound
        before = write(stored(table))
        expected = undoes.after if undoes is not None else before if seen is None else write(seen)
        if before != expected:
            raise activity.ChangedSince
        table.policies.all().delete()
        StoredAccessPolicy.objects.bulk_create(
            _record(table, place, identifier) for place, identifier in enumerate(identifiers)
        )
        return activity.record(
            AccessVerb.POLICIES_SET,
            by,
            account=account,
            table=table,
            before=before,
            after=write(identifiers),
            undoes=undoes,
        )


def write(identifiers: Sequence[SignedIdentifier]) -> list[dict[str, Any]]:
    """Convert policies to the form of the activity log."""
    return [asdict(identifier) for identifier in identifiers]


def read(written: Sequence[Mapping[str, Any]]) -> list[SignedIdentifier]:
    """Restore policies from the form of the activity log."""
    return [
        SignedIdentifier(one["identifier"], None if one["policy"] is None else AccessPolicy(**one["policy"]))
        for one in written
    ]


def copy(written: Sequence[Mapping[str, Any]], table: Table) -> None:
    """Add policies in the form of ``write`` to a new table."""
    StoredAccessPolicy.objects.bulk_create(
        _record(table, place, identifier) for place, identifier in enumerate(read(written))
    )


def _record(table: Table, place: int, identifier: SignedIdentifier) -> StoredAccessPolicy:
    policy = identifier.policy or AccessPolicy()
    return StoredAccessPolicy(
        table=table,
        place=place,
        identifier=identifier.identifier,
        has_policy=identifier.policy is not None,
        start=policy.start,
        expiry=policy.expiry,
        permission=policy.permission,
    )


def identifier(record: StoredAccessPolicy) -> SignedIdentifier:
    return SignedIdentifier(record.identifier, record.terms if record.has_policy else None)
