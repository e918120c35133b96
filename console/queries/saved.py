"""Queries with a name, of one person or shared with everybody in the account; each change of one is a version."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.text import slugify

from console.models import SavedQuery, SavedQueryVersion, User
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability, Role, may
from storage.domain.service.activity import Verb
from storage.models import Account, Activity, Table
from storage.operations import activity
from storage.operations.activity import ChangedSince

_SLUG: Final = 56  # characters, so that a number fits behind
_ATTEMPTS: Final = 5  # at a slug that somebody else takes at the same moment


@dataclass(frozen=True, slots=True)
class Draft:
    """What a query is: ``content`` is what of a grid's address it keeps, by name."""

    name: str
    description: str = ""
    content: Mapping[str, str] = field(default_factory=dict)
    is_shared: bool = False


# reading


def visible(user: User, account_ids: Collection[int]) -> QuerySet[SavedQuery]:
    """What is private is seen by its owner alone."""
    found = SavedQuery.objects.filter(Q(is_shared=True) | Q(owner=user), account__in=account_ids)
    return found.filter(deleted_at=None).select_related("owner")


def of_table(user: User, table: Table) -> list[SavedQuery]:
    found = visible(user, [table.account_id]).filter(table_name=table.folded_name)
    return sorted(found, key=lambda query: (query.name.casefold(), query.pk))


def find(user: User, table: Table, slug: str) -> SavedQuery | None:
    return find_named(user, table.account_id, table.folded_name, slug)


def find_named(user: User, account_id: int, table_name: str, slug: str) -> SavedQuery | None:
    """Also where there is no table of this name any more."""
    if "\0" in slug + table_name:
        return None
    return visible(user, [account_id]).filter(table_name=table_name.lower(), slug=slug).first()


def find_deleted(user: User, table: Table, slug: str) -> SavedQuery | None:
    """The last one that stood at this address."""
    found = SavedQuery.objects.filter(Q(is_shared=True) | Q(owner=user), account=table.account_id)
    gone = found.filter(table_name=table.folded_name, slug=slug.replace("\0", ""), deleted_at__isnull=False)
    return gone.order_by("-deleted_at").first()


def named(user: User, account_ids: Collection[int], text: str, *, top: int) -> list[SavedQuery]:
    """Those of tables that are there of which the name, in any letter case, holds this."""
    tables = Table.objects.own().filter(account=OuterRef("account"), folded_name=OuterRef("table_name"))
    found = visible(user, account_ids).filter(Exists(tables), name__icontains=text)
    return list(found.order_by("name", "pk")[:top])


def may_change(user: User, role: Role, query: SavedQuery) -> bool:
    return may(role, Capability.WRITE) if query.is_shared else query.owner_id == user.pk


def versions(user: User, query: SavedQuery) -> list[SavedQueryVersion]:
    """The newest first; to others than the owner only what was shared."""
    found = query.versions.order_by("-number")
    return list(found if query.owner_id == user.pk else found.filter(content__is_shared=True))


def newest(query: SavedQuery) -> int:
    number: int | None = query.versions.aggregate(number=Max("number"))["number"]
    return number or 0


def draft_of(query: SavedQuery) -> Draft:
    return Draft(query.name, query.description, query.content, query.is_shared)


def draft_at(version: SavedQueryVersion, *, is_shared: bool) -> Draft:
    """As it was; with whom it is shared is no part of a version."""
    kept = version.content
    return Draft(kept["name"], kept["description"], kept["content"], is_shared)


# changing


def create(table: Table, draft: Draft, *, owner: User, by: Actor) -> SavedQuery:
    """Its address is made of its name, and stays when that changes."""
    for _attempt in range(_ATTEMPTS):
        try:
            return _create(table, draft, owner, by)
        except IntegrityError:
            continue
    return _create(table, draft, owner, by)


@transaction.atomic
def _create(table: Table, draft: Draft, owner: User, by: Actor) -> SavedQuery:
    query = SavedQuery.objects.create(
        account_id=table.account_id,
        table_name=table.folded_name,
        slug=_free_slug(table.account_id, table.folded_name, draft.name),
        name=draft.name,
        description=draft.description,
        content=dict(draft.content),
        owner=owner,
        is_shared=draft.is_shared,
    )
    _add_version(query, 1, by)
    if query.is_shared:
        _record(Verb.QUERY_CREATE, query, by, after=draft)
    return query


def _free_slug(account_id: int, table_name: str, name: str) -> str:
    start = slugify(name, allow_unicode=True)[:_SLUG].strip("-_") or "query"
    there = SavedQuery.objects.filter(account=account_id, table_name=table_name, deleted_at=None)
    taken = set(there.filter(slug__startswith=start).values_list("slug", flat=True))
    numbered = (f"{start}-{number}" for number in range(2, len(taken) + 3))
    return next(slug for slug in (start, *numbered) if slug not in taken)


@transaction.atomic
def change(
    query: SavedQuery, draft: Draft, *, seen: int, by: Actor, undoes: Activity | None = None
) -> SavedQuery:
    """Nothing happens where nothing differs; raises ChangedSince when there is a newer version than the one seen."""
    fresh = _locked(query)
    number, before = newest(fresh), draft_of(fresh)
    if number != seen:
        raise ChangedSince
    if before == draft:
        return fresh
    fresh.name, fresh.description = draft.name, draft.description
    fresh.content, fresh.is_shared = dict(draft.content), draft.is_shared
    fresh.save()
    _add_version(fresh, number + 1, by)
    if before.is_shared or draft.is_shared:
        _record(Verb.QUERY_CHANGE, fresh, by, before=before, after=draft, undoes=undoes)
    return fresh


@transaction.atomic
def delete(query: SavedQuery, *, by: Actor, undoes: Activity | None = None) -> Activity:
    """Kept with its versions for as long as the record is, so that it can be brought back; raises ChangedSince."""
    fresh = _locked(query)
    fresh.deleted_at = timezone.now()
    fresh.save(update_fields=("deleted_at",))
    return _record(Verb.QUERY_DELETE, fresh, by, before=draft_of(fresh), undoes=undoes)


def _restore(query: SavedQuery, *, by: Actor, undoes: Activity) -> Activity:
    """At its own address, unless another query stands there meanwhile."""
    there = SavedQuery.objects.filter(account=query.account_id, table_name=query.table_name, deleted_at=None)
    if there.filter(slug=query.slug).exists():
        query.slug = _free_slug(query.account_id, query.table_name, query.name)
    query.deleted_at = None
    query.save(update_fields=("deleted_at", "slug"))
    return _record(Verb.QUERY_CREATE, query, by, after=draft_of(query), undoes=undoes)


def _locked(query: SavedQuery) -> SavedQuery:
    fresh = SavedQuery.objects.select_for_update().filter(pk=query.pk, deleted_at=None).first()
    if fresh is None:
        raise ChangedSince
    return fresh


def _add_version(query: SavedQuery, number: int, by: Actor) -> None:
    kept = {
        "name": query.name,
        "description": query.description,
        "content": query.content,
        "is_shared": query.is_shared,
    }
    SavedQueryVersion.objects.create(query=query, number=number, content=kept, author=by.name)


# the record


def _told(draft: Draft | None) -> dict[str, object] | None:
    """As the record shows it, which everybody in the account reads: of what is private it says only that it was."""
    if draft is None or not draft.is_shared:
        return None
    return {
        "name": draft.name,
        "description": draft.description,
        "query": dict(draft.content),
        "is_shared": draft.is_shared,
    }


def _record(
    verb: Verb,
    query: SavedQuery,
    by: Actor,
    *,
    before: Draft | None = None,
    after: Draft | None = None,
    undoes: Activity | None = None,
) -> Activity:
    table = Table.objects.filter(
        account=query.account_id, folded_name=query.table_name, deleted_at=None
    ).first()
    told = next((draft for draft in (after, before) if draft is not None and draft.is_shared), None)
    detail = {
        "query": "" if told is None else told.name,
        "of_table": query.table_name,
        "saved": query.pk,
        "version": newest(query),
    }
    return activity.record(
        verb,
        by,
        account=Account.objects.get(pk=query.account_id),
        table=table,
        detail=detail,
        before=_told(before),
        after=_told(after),
        undoes=undoes,
    )


@transaction.atomic
def undo(done: Activity, *, by: Actor) -> Activity:
    """Raises ChangedSince."""
    query = SavedQuery.objects.select_for_update().filter(pk=done.detail.get("saved", 0)).first()
    if query is None or newest(query) != done.detail.get("version"):
        raise ChangedSince
    match Verb(done.detail.get("verb", done.verb)):
        case Verb.QUERY_CREATE:
            return delete(query, by=by, undoes=done)
        case Verb.QUERY_DELETE if query.deleted_at is not None:
            return _restore(query, by=by, undoes=done)
        case Verb.QUERY_CHANGE if query.deleted_at is None and done.before and done.after:
            return _undo_change(query, done, by)
    raise ChangedSince


def _undo_change(query: SavedQuery, done: Activity, by: Actor) -> Activity:
    before: dict[str, Any] = done.before or {}
    draft = Draft(before["name"], before["description"], before["query"], before["is_shared"])
    change(query, draft, seen=newest(query), by=by, undoes=done)
    return Activity.objects.get(undoes=done)


def tidy(now: datetime) -> None:
    """What was deleted goes with what the record says of it; what was private goes with its owner."""
    limit = now - timedelta(days=settings.ACTIVITY_DAYS)
    SavedQuery.objects.filter(Q(deleted_at__lt=limit) | Q(owner=None, is_shared=False)).delete()
