"""Saving of edited entities, all or none, with the refusal to show; used by every entity editor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from django.http import HttpRequest
from django.urls import reverse

from console.site.access import actor_of
from console.site.addresses import is_console_path
from console.site.refusals import describe_refusal
from storage.domain.entities.changes import Change
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    ResourceNotFound,
    StorageError,
    UpdateConditionNotSatisfied,
)
from storage.domain.history.recorded import RecordedChange
from storage.domain.values.etag import write_etag
from storage.entities import edits, entities
from storage.entities.edits import Applied
from storage.history import last_change
from storage.models import Table

T = TypeVar("T")
_MEANWHILE: Final = (EntityAlreadyExists, ResourceNotFound, UpdateConditionNotSatisfied)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why nothing was saved."""

    error: StorageError
    index: int | None = None  # the change that failed, None if the error is not about one of them

    @property
    def is_conflict(self) -> bool:
        """Return whether another change came first."""
        return isinstance(self.error, _MEANWHILE)

    @property
    def is_of_deleted(self) -> bool:
        return isinstance(self.error, ResourceNotFound)

    @property
    def text(self) -> str:
        return describe_refusal(self.error)


def attempt(apply: Callable[[], T]) -> T | Refusal:
    """Run a change; return its result, or the service's refusal."""
    try:
        return apply()
    except ChangeSetError as failure:
        return Refusal(failure.error, failure.index)
    except StorageError as error:
        return Refusal(error)


def save(request: HttpRequest, table: Table, changes: Sequence[Change]) -> Applied | Refusal:
    """Apply changes of a user, all or none."""
    return attempt(lambda: edits.apply(table, changes, by=actor_of(request)))


@dataclass(frozen=True, slots=True)
class Conflict:
    """Conflict with another change: the entity now, None if deleted, and that change if known."""

    stored: StoredEntity | None
    last: RecordedChange | None

    @property
    def etag(self) -> str:
        return "" if self.stored is None else write_etag(self.stored.timestamp)

    @property
    def deleted(self) -> StoredEntity | None:
        """Return the entity as it was before its deletion; None if it exists or that is unknown."""
        return None if self.stored is not None or self.last is None else self.last.before


@dataclass
class EntityEdit:
    """Edit of one entity by a user, which results in a save, a refusal or a conflict."""

    request: HttpRequest
    table: Table
    key: EntityKey

    @cached_property
    def stored(self) -> StoredEntity | None:
        """Return the entity as last read."""
        return entities.get(self.table, self.key)

    def conflict(self) -> Conflict:
        """Read the current entity and its last change."""
        self.stored = entities.get(self.table, self.key)
        return Conflict(self.stored, last_change.of_entity(self.table, self.key, self.stored))

    def save(
        self, make: Callable[[], Change], *, known: StoredEntity | None = None
    ) -> Applied | Refusal | Conflict:
        """Make and apply a change; return its result, a refusal or a conflict. ``known`` is as in edits.apply."""
        by = actor_of(self.request)
        done = attempt(lambda: edits.apply(self.table, [make()], by=by, known=known))
        return self.conflict() if isinstance(done, Refusal) and done.is_conflict else done


def next_address(request: HttpRequest) -> str:
    """Return the page to show next, as sent by the form, unchecked."""
    return request.POST.get("next", "") or request.GET.get("next", "")


def back_address(request: HttpRequest, table: Table) -> str:
    """Return the page to show after a form: its own if valid, otherwise the table's grid."""
    address = next_address(request)
    if is_console_path(address):
        return address
    return reverse("entities:index", args=(table.account.name, table.name))
