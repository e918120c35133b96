"""What an address would be too long to say: the server keeps it, and an address of one key stands for it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl

from django.http import QueryDict
from django.utils import timezone
from django.utils.crypto import salted_hmac

from console.models import StoredState
from storage.models import Table

NAME: Final = "k"  # in an address
LONGEST: Final = 1800  # bytes of an address that stands for itself
_KEPT: Final = timedelta(days=180)  # since it was used last
_EXACT_TO: Final = timedelta(days=1)  # so that reading costs no write
_KEY: Final = re.compile(r"[0-9a-f]{24}", re.ASCII)

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Short:
    """A key, and the query string it stands for."""

    key: str
    query: str

    def beneath(self, query: QueryDict) -> QueryDict:
        """All that the address says: what stands in it counts, also where it says that there is nothing."""
        found = QueryDict(self.query, mutable=True)
        for name, values in query.lists():
            found.setlist(name, values)
        return found

    def beside(self, fields: Pairs) -> list[tuple[str, str]]:
        """What an address has to say so that with the key it says these."""
        mine, asked = _by_name(parse_qsl(self.query, keep_blank_values=True)), _by_name(fields)
        return [
            (NAME, self.key),
            *(
                (name, value)
                for name in {**mine, **asked}
                if mine.get(name) != asked.get(name)
                for value in asked.get(name, [""])
            ),
        ]


def _by_name(fields: Pairs) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in fields:
        found.setdefault(name, []).append(value)
    return found


def keep(table: Table, query: str) -> Short:
    """The same under the same key, which nobody guesses without the server's secret."""
    state, now = _of(table, query), timezone.now()
    key = salted_hmac(__name__, state, algorithm="sha256").hexdigest()[:24]
    StoredState.objects.bulk_create(
        [StoredState(key=key, state=state, used_at=now)],
        update_conflicts=True,
        unique_fields=("key",),
        update_fields=("used_at",),
    )
    return Short(key, query)


def find(table: Table, key: str) -> Short | None:
    """None when it is not kept, or not any more, or is of another table."""
    stored = StoredState.objects.filter(pk=key).first() if _KEY.fullmatch(key) else None
    if stored is None or not stored.state.startswith(_of(table, "")):
        return None
    now = timezone.now()
    if stored.used_at < now - _EXACT_TO:
        StoredState.objects.filter(pk=key).update(used_at=now)
    return Short(key, stored.state.partition("?")[2])


def _of(table: Table, query: str) -> str:
    # with the table, so that a key tells nothing to who may read another one only
    return f"{table.pk}?{query}"


def tidy(now: datetime) -> None:
    StoredState.objects.filter(used_at__lt=now - _KEPT).delete()
