"""Tables of many accounts, by a part of their name."""

from collections.abc import Collection

from django.db.models import Case, IntegerField, Value, When

from storage.models import Table


def tables(account_ids: Collection[int], containing: str, *, top: int = 20) -> list[Table]:
    """In any letter case: first those of exactly this name, then those that begin with it, then by name."""
    # tables have ASCII names, so that lower() means the same in every language
    wanted = containing.lower()
    rank = Case(
        When(folded_name=wanted, then=Value(0)),
        When(folded_name__startswith=wanted, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    found = Table.objects.own().filter(account_id__in=account_ids, folded_name__contains=wanted)
    return list(found.select_related("account").order_by(rank, "folded_name", "account__name")[:top])
