"""Tables of many accounts, by a part of their name."""

from collections.abc import Iterable

from django.db.models import Case, IntegerField, Value, When

from storage.models import Account, Table


def tables(accounts: Iterable[Account], containing: str, *, top: int = 20) -> list[Table]:
    """In any letter case: first those of exactly this name, then those that begin with it, then by name."""
    # tables have ASCII names, so that lower() means the same in every language
    wanted = containing.lower()
    rank = Case(
        When(folded_name=wanted, then=Value(0)),
        When(folded_name__startswith=wanted, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    known = {account.pk: account for account in accounts}
    found = Table.objects.own().filter(account_id__in=known, folded_name__contains=wanted)
    rows = list(found.order_by(rank, "folded_name", "account_id")[:top])
    for table in rows:
        table.account = known[table.account_id]  # a join of all that match would take as long as finding them
    return rows
