"""The stored access policies of a table."""

from collections.abc import Sequence

from storage.domain.errors import InsufficientAccountPermissions, ResourceNotFound
from storage.domain.names import is_analytics_name
from storage.domain.policies import AccessPolicy, SignedIdentifier, check
from storage.models import StoredAccessPolicy, Table
from storage.operations import tables
from storage.operations.heeded import heeded


def stored(account_id: int, folded_name: str) -> list[SignedIdentifier]:
    """Get Table ACL, in the order they were set."""
    table = tables.find(account_id, folded_name)
    if table is None:
        raise ResourceNotFound
    return [_identifier(policy) for policy in table.policies.order_by("place")]


def replace(account_id: int, folded_name: str, identifiers: Sequence[SignedIdentifier]) -> None:
    """Set Table ACL: these take the place of all stored ones; every request from here on goes by them."""
    check(identifiers)
    if is_analytics_name(folded_name):
        raise InsufficientAccountPermissions
    if stored(account_id, folded_name) == list(identifiers):
        return  # a set that is saved as it was need not keep anybody waiting
    with heeded():
        table = (
            Table.objects.select_for_update()
            .filter(account_id=account_id, folded_name=folded_name, deleted_at=None)
            .first()
        )
        if table is None:
            raise ResourceNotFound
        table.policies.all().delete()
        StoredAccessPolicy.objects.bulk_create(
            _record(table, place, identifier) for place, identifier in enumerate(identifiers)
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


def _identifier(record: StoredAccessPolicy) -> SignedIdentifier:
    policy = AccessPolicy(record.start, record.expiry, record.permission)
    return SignedIdentifier(record.identifier, policy if record.has_policy else None)
