"""Search for tables, policies and tokens in many accounts by part of their name."""

from collections.abc import Iterable, Sequence

from django.db.models import Case, IntegerField, Q, Value, When

from storage.domain.values.kinds import AccountKind
from storage.models import Account, RegisteredSas, StoredAccessPolicy, Table


def tables(
    accounts: Iterable[Account], containing: str, *, first: Sequence[Table] = (), top: int = 20
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
    known = {account.pk: account for account in accounts}
    cosmos = [account.pk for account in known.values() if account.kind == AccountKind.COSMOS]
    containing_it = Q(folded_name__contains=wanted)
    if cosmos:
        containing_it |= Q(account_id__in=cosmos, name__icontains=containing)
    found = Table.objects.own().filter(containing_it, account_id__in=known)
    rows = list(found.order_by(rank, "folded_name", "account_id")[:top])
    for table in rows:
        table.account = known[table.account_id]  # joining all matches would double the time
    return rows


def policies(accounts: Iterable[Account], containing: str, *, top: int = 20) -> list[StoredAccessPolicy]:
    """Search policies by identifier; with their tables and accounts."""
    found = StoredAccessPolicy.objects.filter(
        table__account__in=list(accounts), table__deleted_at=None, identifier__icontains=containing
    )
    return list(found.select_related("table__account").order_by("identifier", "table__folded_name")[:top])


def tokens(accounts: Iterable[Account], containing: str, *, top: int = 20) -> list[RegisteredSas]:
    """Search shared access signatures by label, newest first; with their accounts."""
    found = RegisteredSas.objects.filter(account__in=list(accounts), label__icontains=containing)
    return list(found.select_related("account").order_by("-created_at", "-pk")[:top])
