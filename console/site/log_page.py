"""Common parts of log pages: filter in the URL, cursor pages, days, and export links."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import date, datetime, timedelta
from enum import Enum, auto
from itertools import groupby
from typing import Any, Final, Generic, Self, TypeVar

from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _

from console.site.times import to_local, write_day
from storage.domain.values.numbers import read_number

Row = TypeVar("Row")
Record = TypeVar("Record", bound=Model)

PAGE_SIZE: Final = 50
_LONGEST: Final = 2048  # characters of a field, such as the message of an exception


class QueryPart(Enum):
    """Part of a LogQuery to which a field belongs."""

    FILTER = auto()
    VIEW = auto()  # how the page looks, which selects nothing
    PAGE = auto()  # where the page is in the log, which any change leaves


def url_field(
    check: Callable[[str], object] = bool, *, part: QueryPart = QueryPart.FILTER, has_spaces: bool = False
) -> Any:
    """Declare a field of a LogQuery.

    A text is invalid if its check returns None or False. With ``has_spaces``, spaces at its ends are part of
    the text.
    """
    return field(default="", metadata={"check": check, "part": part, "has_spaces": has_spaces})


def is_one_of(values: Container[str]) -> Callable[[str], bool]:
    return lambda text: text in values


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Filter and page of a log as in its URL; unset fields are empty.

    Each log subclasses it and declares its fields with ``url_field``.
    """

    @classmethod
    def read(cls, data: QueryDict) -> Self:
        """Parse a query, dropping invalid values."""
        values = {}
        for it in fields(cls):
            text = data.get(it.name, "")
            text = (text if it.metadata["has_spaces"] else text.strip()).replace("\0", "")[:_LONGEST]
            result = it.metadata["check"](text)
            values[it.name] = "" if result is None or result is False else text
        return cls(**values)

    @property
    def is_filtered(self) -> bool:
        return any(getattr(self, it.name) for it in fields(self) if it.metadata["part"] is QueryPart.FILTER)

    def query_string(self, **changed: object) -> str:
        """Return the query string with question mark, without the page; ``changed`` overrides fields."""
        page = {it.name: "" for it in fields(self) if it.metadata["part"] is QueryPart.PAGE}
        query = QueryDict(mutable=True)
        query.update({name: str(value) for name, value in (asdict(self) | page | changed).items() if value})
        return f"?{query.urlencode()}"

    def export_urls(self, path: str, **changed: object) -> dict[str, str]:
        """Return the export URLs of the filter, for the template context."""
        return {
            f"{format_}_url": path + self.query_string(format=format_, **changed)
            for format_ in ("csv", "ndjson")
        }


def take_newest(
    records: QuerySet[Record], before: str, top: int = PAGE_SIZE
) -> tuple[list[Record], int | None]:
    """Return a page of records, newest first, and the cursor of older ones, if any."""
    number = read_number(before)
    records = records if number is None else records.filter(pk__lt=number)
    return cut_page(list(records.order_by("-pk")[: top + 1]), top)


def cut_page(rows: Sequence[Record], top: int = PAGE_SIZE) -> tuple[list[Record], int | None]:
    """Cut a page that was read with one extra row, and return its cursor like take_newest."""
    return list(rows[:top]), rows[top - 1].pk if len(rows) > top else None


@dataclass(frozen=True, slots=True)
class LogDay(Generic[Row]):
    """Rows of one day in the user's time zone."""

    date: date
    rows: Sequence[Row]

    @property
    def is_today(self) -> bool:
        return self.date == timezone.localdate()

    @property
    def title(self) -> str:
        if self.is_today:
            return _("Today")
        return (
            _("Yesterday") if self.date == timezone.localdate() - timedelta(days=1) else write_day(self.date)
        )


def by_day(rows: Iterable[Row], time_of: Callable[[Row], datetime]) -> Iterator[LogDay[Row]]:
    for day, of_day in groupby(rows, key=lambda row: to_local(time_of(row)).date()):
        yield LogDay(day, list(of_day))
