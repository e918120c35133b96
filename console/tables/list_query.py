"""The filter and page of the table list as a URL carries them."""

from dataclasses import dataclass

from django.http import QueryDict

from console.site.addresses import address_of, read_text
from storage.models import Account
from storage.tables.table_list import TableOrder


@dataclass(frozen=True, slots=True)
class TableListQuery:
    """``sort``: the name of an order, with a hyphen if descending; empty by name."""

    containing: str = ""
    tag: str = ""
    after: str = ""
    sort: str = ""

    @property
    def order(self) -> TableOrder:
        return TableOrder(self.sort.removeprefix("-") or TableOrder.NAME)

    @property
    def is_descending(self) -> bool:
        return self.sort.startswith("-")

    @staticmethod
    def first_sort(order: TableOrder) -> str:
        """Return ``sort`` of a column that is chosen for the first time: amounts begin with the largest."""
        return "" if order is TableOrder.NAME else f"-{order}"

    def sorted_by(self, order: TableOrder) -> str:
        """What ``sort`` becomes when a column is chosen: amounts begin with the largest, a second choice turns."""
        first, second = ("name", "-name") if order is TableOrder.NAME else (f"-{order}", order.value)
        wanted = second if (self.sort or "name") == first else first
        return "" if wanted == "name" else wanted

    def address(self, account: Account, name: str = "tables:index", **changed: str) -> str:
        values = {"q": self.containing, "tag": self.tag, "after": self.after, "sort": self.sort}
        return address_of(name, account.name, **values | changed)


def read_list_query(data: QueryDict) -> TableListQuery:
    """An unknown order is ignored."""
    containing, tag, after, sort = (read_text(data, name) for name in ("q", "tag", "after", "sort"))
    is_known = sort.removeprefix("-") in set(TableOrder)
    return TableListQuery(containing, tag, after, sort if is_known else "")


def selected_names(data: QueryDict) -> list[str]:
    """Return the names of the tables that are ticked."""
    return list(dict.fromkeys(data.getlist("table")))
