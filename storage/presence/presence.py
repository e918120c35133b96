"""Presence of browser tabs on tables: each process stores its tabs regularly and reads those of the others."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.apps import apps
from django.conf import settings

from storage.domain.access.presence import PresentTab
from storage.models import Presence
from storage.people.members import Person
from storage.sql import presence as statements
from storage.sql.notify import notify_presence

HEARTBEAT: Final = 10.0  # seconds
LIFETIME: Final = 30.0  # seconds that a process's rows stay valid after its last write
LONGEST_ENTITY: Final = 6000  # characters of the name of an entity


@dataclass(frozen=True, slots=True)
class Tab:
    """Browser tab, by its own id, in which a user views a table and possibly an entity."""

    tab: UUID
    user_id: int
    table_id: int
    entity: str = ""

    @property
    def name(self) -> tuple[UUID, int]:
        return self.tab, self.user_id


def beat(process: str, tabs: Collection[Tab], new: Iterable[Tab] = ()) -> list[PresentTab]:
    """Store the open tabs of a process, and return all tabs that view the same tables, in one statement.

    Each tab is returned once. Users who hide their presence or lost access are left out. ``new`` are tabs
    that have just connected; other processes are notified of them at once. The others keep their entities.
    """
    new = list(new)
    users = apps.get_model(settings.AUTH_USER_MODEL)._meta.db_table
    rows = [(it.tab, it.user_id, it.table_id, it.entity) for it in tabs]
    present = statements.beat(process, rows, [it.tab for it in new], users, LIFETIME)
    _tell(new)
    return present


def leave(process: str, tabs: Collection[Tab]) -> None:
    """Remove tabs of a process, unless another process has taken them over."""
    for it in tabs:
        Presence.objects.filter(tab=it.tab, user_id=it.user_id, process=process).delete()
    _tell(tabs)


def move(user: Person, tab: UUID, table_id: int, entity: str) -> bool:
    """Record the entity that a tab shows, empty for none; return whether the tab is known."""
    own = Presence.objects.filter(tab=tab, user_id=user.pk, table_id=table_id)
    is_known = bool(own.update(entity=entity[:LONGEST_ENTITY]))
    if is_known:
        notify_presence(table_id)
    return is_known


def announce(user: Person) -> None:
    """Refresh the presence at a user's open tables, after the user has changed their visibility."""
    for table_id in set(Presence.objects.filter(user_id=user.pk).values_list("table_id", flat=True)):
        notify_presence(table_id)


def _tell(tabs: Iterable[Tab]) -> None:
    for table_id in {it.table_id for it in tabs}:
        notify_presence(table_id)
