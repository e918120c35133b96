"""The filter and page of the table list as a URL carries them."""

from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse

from storage.models import Account


@dataclass(frozen=True, slots=True)
class TableListQuery:
    containing: str = ""
    tag: str = ""
    after: str = ""

    def address(self, account: Account, name: str = "tables:index", **changed: str) -> str:
        values = {"q": self.containing, "tag": self.tag, "after": self.after} | changed
        query = {name: value for name, value in values.items() if value}
        return reverse(name, args=(account.name,), query=query)


def read_list_query(data: QueryDict) -> TableListQuery:
    return TableListQuery(*(data.get(name, "").strip().replace("\0", "") for name in ("q", "tag", "after")))
