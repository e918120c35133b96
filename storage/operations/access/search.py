"""Search for tables, policies and tokens in many accounts by part of their name."""

from collections.abc import Sequence

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When, prefetch_related_objects

from storage.domain.values.kinds import AccountKind
from storage.models import Account, RegisteredSas, StoredAccessPolicy, Table


def tables(
    accounts: QuerySet[Account], containing: str, *, first: Sequence[Table] = (), top: int = 20
) -> list[Table]:
    """Search in any letter case; exact matches come first, then those in ``first``, then prefixes, then by name."""
    # names are ASCII, so lower() does not depend on a language; in Cosmos accounts they are not folded
    wanted = containing.lower()
    rank = Case(
        When(folded_name=wanted, then=Value(0)),
        *(When(pk=table.pk, then=Value(1 + place)) for place, table in enumerate(first)),
        When(folded_name__startswith=wanted, then=Value(1 + len(first))),
        default=Value(2 + len(first)),
        output_field=IntegerField(),
    )
    shown = accounts.order_by()
    containing_it = Q(folded_name__contains=wanted)
    cosmos = shown.filter(kind=AccountKind.COSMOS).values("pk")
    if cosmos.exists():
        containing_it |= Q(account__in=cosmos, name__icontains=containing)
    found = Table.objects.own().filter(containing_it, account__in=shown.values("pk"))
    rows = list(found.order_by(rank, "folded_name", "account_id")[:top])
    # joining all matches would double the time
    prefetch_related_objects(rows, "account")
    return rows


def policies(accounts: QuerySet[Account], containing: str, *, top: int = 20) -> list[StoredAccessPolicy]:
    """Search policies by identifier; with their tables and accounts."""
    found = StoredAccessPolicy.objects.filter(
        table__account__in=accounts.order_by().values("pk"),
        table__deleted_at=None,
        identifier__icontains=containing,
    )
    return list(found.select_related("table__account").order_by("identifier", "table__folded_name")[:top])


def tokens(accounts: QuerySet[Account], containing: str, *, top: int = 20) -> list[RegisteredSas]:
    """Search shared access signatures by label, newest first; with their accounts."""
    shown = accounts.order_by().values("pk")
    found = RegisteredSas.objects.filter(account__in=shown, label__icontains=containing)
    return list(found.select_related("account").order_by("-created_at", "-pk")[:top])
