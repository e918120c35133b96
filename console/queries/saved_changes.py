"""Changes of saved queries; changes of shared ones are in the activity log."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.text import slugify

from console.models import SavedQuery, User
from console.queries.saved import Definition, revision
from storage.accounts import locking, quotas
from storage.accounts.quotas import Allowance, QuotaReached
from storage.activity import activity
from storage.activity.activity import ChangedSince
from storage.core import registry
from storage.core.quotas import OWN_SAVED_QUERIES, SAVED_QUERIES
from storage.core.subject import Hook
from storage.core.verbs import Verb
from storage.domain.access.actor import Actor
from storage.domain.refusals import Reason
from storage.models import Account, Activity, Table
from storage.queries.subject import QueryVerb
from storage.tables import tables

_SLUG_LENGTH: Final = 56  # characters, which leaves room for a number
_ATTEMPTS: Final = 5  # at a slug that another request takes at the same moment


def read_definition(query: SavedQuery) -> Definition:
    return Definition(query.name, query.description, query.content, query.is_shared)


def create_query(table: Table, definition: Definition, *, owner: User, by: Actor) -> SavedQuery:
    """Create a query with an address derived from its name, kept on renaming; raises QuotaReached."""
    for _attempt in range(_ATTEMPTS):
        try:
            return _create(table, definition, owner, by)
        except IntegrityError:
            continue
    return _create(table, definition, owner, by)


@transaction.atomic
def _create(table: Table, definition: Definition, owner: User, by: Actor) -> SavedQuery:
    _check_quotas(table.account, owner)
    query = SavedQuery.objects.create(
        account_id=table.account_id,
        table_name=table.folded_name,
        slug=_free_slug(table.account_id, table.folded_name, definition.name),
        owner=owner,
        **asdict(definition),
    )
    if query.is_shared:
        _record(QueryVerb.CREATE, query, by, after=definition)
    return query


def allowance(account: Account) -> Allowance:
    """Return the number of an account's saved queries and its quota."""
    number = SavedQuery.objects.filter(account=account, deleted_at=None).count()
    return Allowance(number, quotas.limit(SAVED_QUERIES, account))


def own_allowance(user: User) -> Allowance:
    """Return the number of a user's saved queries and the quota."""
    return Allowance(
        SavedQuery.objects.filter(owner=user, deleted_at=None).count(), quotas.limit(OWN_SAVED_QUERIES)
    )


def _check_quotas(account: Account, owner: User | None) -> None:
    """Raise QuotaReached if a quota is used up, holding locks until the transaction ends."""
    if owner is not None:
        quotas.lock_user(owner.pk)
        own = own_allowance(owner)
        if own.is_used_up:
            raise QuotaReached(Reason.TOO_MANY_OWN_QUERIES, most=own.most)
    left = allowance(locking.lock(account))
    if left.is_used_up:
        raise QuotaReached(Reason.TOO_MANY_SAVED_QUERIES, account=account.name, most=left.most)


def follow_table(table: Table, former: str) -> None:
    """Move the saved queries of a renamed table to its new name."""
    queries = SavedQuery.objects.filter(account=table.account_id, table_name=former, deleted_at=None)
    for query in queries:
        query.slug = _free_slug(query.account_id, table.folded_name, query.name)
        query.table_name = table.folded_name
        query.save(update_fields=("slug", "table_name"))


def _free_slug(account_id: int, table_name: str, name: str) -> str:
    start = slugify(name, allow_unicode=True)[:_SLUG_LENGTH].strip("-_") or "query"
    existing = SavedQuery.objects.filter(account=account_id, table_name=table_name, deleted_at=None)
    taken = set(existing.filter(slug__startswith=start).values_list("slug", flat=True))
    numbered = (f"{start}-{number}" for number in range(2, len(taken) + 3))
    return next(slug for slug in (start, *numbered) if slug not in taken)


@transaction.atomic
def change_query(
    query: SavedQuery, definition: Definition, *, seen: str, by: Actor, undoes: Activity | None = None
) -> SavedQuery:
    """Change a query, or return None if nothing differs; raises ChangedSince when ``seen`` is outdated."""
    fresh = _lock(query)
    if revision(fresh) != seen:
        raise ChangedSince
    before = read_definition(fresh)
    if before == definition:
        return fresh
    for name, value in asdict(definition).items():
        setattr(fresh, name, value)
    fresh.save()
    if before.is_shared and not definition.is_shared:
        _hide(fresh)
    if before.is_shared or definition.is_shared:
        _record(QueryVerb.CHANGE, fresh, by, before=before, after=definition, undoes=undoes)
    return fresh


@transaction.atomic
def delete_query(query: SavedQuery, *, by: Actor, undoes: Activity | None = None) -> Activity:
    """Soft-delete a query for as long as its activity is kept; raises ChangedSince."""
    fresh = _lock(query)
    fresh.deleted_at = timezone.now()
    fresh.save(update_fields=("deleted_at",))
    _hide(fresh)
    return _record(QueryVerb.DELETE, fresh, by, before=read_definition(fresh), undoes=undoes)


def _hide(query: SavedQuery) -> None:
    for hide_query in registry.hooks(Hook.QUERY_HIDDEN):
        hide_query(query.pk)


def _restore_query(query: SavedQuery, *, by: Actor, undoes: Activity) -> Activity:
    """Restore a deleted query, with a new address if its own is taken; raises QuotaReached."""
    _check_quotas(query.account, query.owner)
    existing = SavedQuery.objects.filter(
        account=query.account_id, table_name=query.table_name, deleted_at=None
    )
    if existing.filter(slug=query.slug).exists():
        query.slug = _free_slug(query.account_id, query.table_name, query.name)
    query.deleted_at = None
    query.save(update_fields=("deleted_at", "slug"))
    return _record(QueryVerb.CREATE, query, by, after=read_definition(query), undoes=undoes)


def _lock(query: SavedQuery) -> SavedQuery:
    fresh = SavedQuery.objects.select_for_update().filter(pk=query.pk, deleted_at=None).first()
    if fresh is None:
        raise ChangedSince
    return fresh


# the activity log


def _record(
    verb: Verb,
    query: SavedQuery,
    by: Actor,
    *,
    before: Definition | None = None,
    after: Definition | None = None,
    undoes: Activity | None = None,
) -> Activity:
    table = tables.named(query.account, query.table_name).first()
    shared = next((it for it in (after, before) if it is not None and it.is_shared), None)
    detail = {
        "query": "" if shared is None else shared.name,
        "of_table": query.table_name,
        "saved": query.pk,
    }
    return activity.record(
        verb,
        by,
        account=query.account,
        table=table,
        detail=detail,
        before=_public_content(before),
        after=_public_content(after),
        undoes=undoes,
    )


def _public_content(definition: Definition | None) -> dict[str, object] | None:
    """Return the content readable by the whole account; None for a private query."""
    if definition is None or not definition.is_shared:
        return None
    kept = asdict(definition)
    return {"query": kept.pop("content"), **kept}


@transaction.atomic
def undo(done: Activity, *, by: Actor) -> Activity:
    """Undo a creation, deletion or change; raises ChangedSince, and QuotaReached."""
    query = SavedQuery.objects.select_for_update().filter(pk=done.detail.get("saved", 0)).first()
    if query is None:
        raise ChangedSince
    is_as_left = query.deleted_at is None and _is_as_left(query, done)
    match done.effective_verb:
        case QueryVerb.CREATE if is_as_left:
            return delete_query(query, by=by, undoes=done)
        case QueryVerb.DELETE if query.deleted_at is not None:
            return _restore_query(query, by=by, undoes=done)
        case QueryVerb.CHANGE if is_as_left and done.before and done.after:
            before = dict(done.before)
            definition = Definition(content=before.pop("query"), **before)
            change_query(query, definition, seen=revision(query), by=by, undoes=done)
            return activity.undo_of(done)
    raise ChangedSince


def _is_as_left(query: SavedQuery, done: Activity) -> bool:
    """Return whether a query is unchanged since an activity; for private queries, only times are compared."""
    if done.after is None and query.updated_at > done.at:
        return False
    return _public_content(read_definition(query)) == done.after


def tidy(now: datetime) -> None:
    """Delete queries whose deletion expired from the activity log, and private ones without an owner."""
    limit = now - timedelta(days=settings.ACTIVITY_DAYS)
    SavedQuery.objects.filter(Q(deleted_at__lt=limit) | Q(owner=None, is_shared=False)).delete()
