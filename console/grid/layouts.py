"""Column layouts: named ones of a user or of everybody in the account, for a table or a pattern of names."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from django.db.models import Q

from console.models import ColumnLayout, User
from storage.models import Account, Table

LAST = ""  # the name under which the columns stand that a user saw last in a table


def last(user: User, account: Account, table: Table) -> str:
    """The columns a user has not asked for and yet expects: those of last time, else of a layout that fits."""
    found = _of(user, account)
    for layout in found:
        if layout.user_id is not None and layout.name == LAST and layout.tables == table.name:
            return text(layout)
    named = fitting(found, table)
    return text(named[0]) if named else ""


def choices(user: User, account: Account, table: Table) -> list[ColumnLayout]:
    """The named layouts that fit a table, the closest first."""
    return fitting(_of(user, account), table)


def fitting(found: Sequence[ColumnLayout], table: Table) -> list[ColumnLayout]:
    fits = [
        layout
        for layout in found
        if layout.name != LAST and fnmatchcase(table.name.lower(), layout.tables.lower())
    ]
    # of a table alone before a pattern, a longer pattern before a shorter one, one's own before a shared one
    return sorted(fits, key=lambda it: ("*" in it.tables, -len(it.tables), it.user_id is None, it.name))


def remember(user: User, account: Account, table: Table, columns: str) -> None:
    save(user, account, LAST, table.name, columns)


def forget(user: User, account: Account, table: Table) -> None:
    ColumnLayout.objects.filter(user=user, account=account, name=LAST, tables=table.name).delete()


def save(user: User | None, account: Account, name: str, tables: str, columns: str) -> None:
    """``user`` None: for everybody. One of the same name and tables is replaced."""
    ColumnLayout.objects.bulk_create(
        [ColumnLayout(user=user, account=account, name=name, tables=tables, columns=columns.split(","))],
        update_conflicts=True,
        unique_fields=("account", "user", "name", "tables"),
        update_fields=("columns", "updated_at"),
    )


def text(layout: ColumnLayout) -> str:
    """The columns as they stand in an address."""
    return ",".join(layout.columns)


def _of(user: User, account: Account) -> list[ColumnLayout]:
    return list(ColumnLayout.objects.filter(Q(user=user) | Q(user=None), account=account))
