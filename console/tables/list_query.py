"""The filter and page of the table list as a URL carries them."""

from dataclasses import dataclass

from django.http import QueryDict

from console.site.addresses import address_of, read_text
from storage.models import Account
from storage.tables.list_columns import NAME, SORTABLE, Column


@dataclass(frozen=True, slots=True)
class TableListQuery:
    """Filter and order of the table list."""

    containing: str = ""
    tag: str = ""
    after: str = ""
    sort: str = ""  # the name of a sortable column, with a hyphen if descending; empty to sort by name

    @property
    def column(self) -> Column:
        return SORTABLE[self.sort.removeprefix("-") or NAME.name]

    @property
    def is_descending(self) -> bool:
        return self.sort.startswith("-")

    @staticmethod
    def first_sort(column: Column) -> str:
        """Return the initial ``sort`` of a newly chosen column: descending for amounts."""
        return "" if column is NAME else f"-{column.name}"

    def sorted_by(self, column: Column) -> str:
        """Return the new ``sort`` after a click on a column, which reverses on the second."""
        first = self.first_sort(column)
        if column is not self.column or self.is_descending != first.startswith("-"):
            return first
        return "-name" if column is NAME else column.name

    def address(self, account: Account, name: str = "tables:index", **changed: str) -> str:
        values = {"q": self.containing, "tag": self.tag, "after": self.after, "sort": self.sort}
        return address_of(name, account.name, **values | changed)


def read_list_query(data: QueryDict) -> TableListQuery:
    """Parse the query of the list, ignoring unknown columns."""
    containing, tag, after, sort = (read_text(data, name) for name in ("q", "tag", "after", "sort"))
    is_known = sort.removeprefix("-") in SORTABLE
    return TableListQuery(containing, tag, after, sort if is_known else "")


def selected_names(data: QueryDict) -> list[str]:
    """Return the names of the selected tables."""
    return list(dict.fromkeys(data.getlist("table")))
