"""The activity log: written in the transaction of the activity itself, and never changed.

It contains no secrets: no keys, signatures, tokens or passwords.
"""

import getpass
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, JSONObject

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.service.activity import Verb
from storage.domain.service.recorded import ChangedEntity
from storage.models import Account, Activity, EntityChange, Table
from storage.operations.activity.actors import SAS_LABEL
from storage.sql.background import allowing_deletion
from storage.sql.django import limited, storable_text
from storage.sql.notify import notify_access

_BATCH: Final = 500  # rows
# what can take away a user's access; open streams then check whether they may continue
_ENDS_ACCESS: Final = frozenset(
    {
        Verb.ACCOUNT_DELETE,
        Verb.API_TOKEN_REVOKE,
        Verb.MEMBER_REMOVE,
        Verb.MEMBER_SET,
        Verb.USER_CHANGE,
        Verb.USER_REMOVE,
    }
)
_PAGE_TIMEOUT: Final = timedelta(seconds=5)
_TIDY_BATCH: Final = 5_000


class ChangedSince(Exception):
    """The target of an undo, or of a conditional change, was changed in the meantime."""


class UndoneAlready(Exception):
    """The activity was undone before, possibly by a concurrent request."""


def command_actor() -> Actor:
    """Return the operating system's user, who runs a management command."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # the user has no name, as in some containers
        name = ""
    return Actor(ActorKind.COMMAND, name)


def record(
    verb: Verb,
    by: Actor,
    *,
    account: Account | None = None,
    table: Table | None = None,
    detail: Mapping[str, object] | None = None,
    before: object = None,
    after: object = None,
    undoes: Activity | None = None,
) -> Activity:
    """Record an activity in the caller's transaction.

    An activity that ``undoes`` another gets the verb UNDO and its own verb as a detail; raises UndoneAlready.
    """
    if verb in _ENDS_ACCESS:
        notify_access()
    details = {**(detail or {}), **({"by_token": by.token} if by.token else {})}
    if undoes is not None:
        _check_not_undone(undoes)
        if verb is not Verb.UNDO:
            verb, details = Verb.UNDO, {"verb": verb, **details}
    return Activity.objects.create(
        verb=verb,
        account_id=None if account is None else account.pk,
        account_name="" if account is None else account.name,
        table_id=None if table is None else table.pk,
        table_name="" if table is None else table.name,
        actor_kind=by.kind,
        actor=storable_text(by.name, 256),
        address=storable_text(by.address, 64),
        agent=storable_text(by.agent, 256),
        request_id=storable_text(by.request_id, 64),
        detail=in_json(details),
        before=before,
        after=after,
        undoes=undoes,
    )


def _check_not_undone(done: Activity) -> None:
    # locked, so that of two concurrent undos the second waits for the first
    Activity.objects.select_for_update().get(pk=done.pk)
    if is_undone(done):
        raise UndoneAlready


def is_undone(done: Activity | int) -> bool:
    """Return whether an activity was undone; an undo that was interrupted may be tried again."""
    return any(not is_interrupted(undo) for undo in Activity.objects.filter(undoes=done))


def undone_by(done: Activity) -> Activity | None:
    """Return the undo of an activity from a page of them; None also for one that was interrupted."""
    return next((undo for undo in done.undone_by.all() if not is_interrupted(undo)), None)


def is_interrupted(done: Activity) -> bool:
    """Return whether the process died, or failed, before it had done everything."""
    return bool(done.detail.get("interrupted"))


def in_json(value: object) -> object:
    """Drop what PostgreSQL's JSON cannot store."""
    match value:
        case str():
            return storable_text(value, len(value))
        case Mapping():
            return {name: in_json(member) for name, member in value.items()}
        case list() | tuple():
            return [in_json(member) for member in value]
    return value


def record_changes(activity: Activity, table: Table, changes: Sequence[ChangedEntity]) -> None:
    """Record the entities that an activity changed, in the order of the request; undo needs them."""
    EntityChange.objects.bulk_create(
        (_change(activity, table, place, changed) for place, changed in enumerate(changes)), batch_size=_BATCH
    )


def _change(activity: Activity, table: Table, place: int, changed: ChangedEntity) -> EntityChange:
    before, after = changed.before, changed.after
    return EntityChange(
        activity=activity,
        place=place,
        table=table,
        partition_key=changed.key.partition_key,
        row_key=changed.key.row_key,
        key_digest=_digest(changed.key),
        before=None if before is None else before.content.decode(),
        after=None if after is None else after.content.decode(),
        ticks_before=None if before is None else before.timestamp,
        ticks_after=None if after is None else after.timestamp,
    )


def _digest(key: EntityKey) -> bytes:
    # no key holds a NUL
    return blake2b(f"{key.partition_key}\0{key.row_key}".encode(), digest_size=16).digest()


def changes_of(done: Activity, *, top: int | None = None) -> list[ChangedEntity]:
    """Return the first entities that an activity changed, in its order."""
    return [_read_change(change) for change in done.changes.order_by("place")[:top]]


def count_changes(done: Activity) -> int:
    """Return how many entities an activity changed."""
    return done.changes.count()


def _read_change(change: EntityChange) -> ChangedEntity:
    key = EntityKey(change.partition_key, change.row_key)

    def image(content: str | None, ticks: int | None) -> StoredEntity | None:
        if content is None or ticks is None:
            return None
        return StoredEntity(encode_entity_key(key), b"%d" % ticks, content.encode())

    return ChangedEntity(
        key, image(change.before, change.ticks_before), image(change.after, change.ticks_after)
    )


def latest_change(table: Table, key: EntityKey) -> tuple[Activity, ChangedEntity] | None:
    """Return the latest change of an entity that was made in the console."""
    changes = EntityChange.objects.filter(table=table, key_digest=_digest(key))
    found = changes.select_related("activity").order_by("-activity_id", "-place").first()
    return None if found is None else (found.activity, _read_change(found))


def changed_again(activities: Collection[int]) -> set[int]:
    """Return those of the activities of which an entity was changed again in the console."""
    later = EntityChange.objects.filter(
        table=OuterRef("table"), key_digest=OuterRef("key_digest"), activity__gt=OuterRef("activity")
    )
    changed = EntityChange.objects.filter(Exists(later), activity__in=activities)
    return set(changed.values_list("activity_id", flat=True))


def latest(table: Table, verb: Verb) -> Activity | None:
    """Return the latest activity of this kind on a table."""
    return Activity.objects.filter(table=table, verb=verb, account=table.account_id).order_by("-pk").first()


# reading


@dataclass(frozen=True, slots=True)
class ActivityFilter:
    """Conditions on activities; an empty one matches all.

    ``key`` is part of a PartitionKey or RowKey, case-sensitive. ``until`` is exclusive.
    """

    account_ids: Collection[int] | QuerySet[Any, Any] | None = None
    account: str = ""  # a name; the account may be deleted
    actor: str = ""
    doors: Collection[ActorKind] = ()
    verbs: Collection[Verb] = ()
    table: str = ""
    key: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ActivityPage:
    """Activities, newest first; ``older``: the id before which the next page begins."""

    activities: list[Activity]
    older: int | None


def get(pk: int) -> Activity | None:
    return _shown(Activity.objects.filter(pk=pk)).first()


def of_numbers(pks: Collection[int]) -> list[Activity]:
    """Return those of the activities that exist."""
    return list(Activity.objects.filter(pk__in=pks))


def latest_of_query(saved_query: int) -> Activity | None:
    """Return the latest activity of a saved query of the console, by its primary key."""
    return Activity.objects.filter(detail__saved=saved_query).order_by("-pk").first()


def undo_of(done: Activity) -> Activity:
    """Return the undo of an activity."""
    return Activity.objects.get(undoes=done)


def page_of_time(
    wanted: ActivityFilter, *, top: int, oldest_first: bool = False
) -> tuple[list[Activity], bool]:
    """Return the newest activities, or the oldest, but newest first, and whether there are more; as ``page``."""
    with limited(_PAGE_TIMEOUT):
        order = ("at", "pk") if oldest_first else ("-at", "-pk")
        rows = list(_shown(find(wanted)).order_by(*order)[: top + 1])
    shown = rows[:top]
    return (shown[::-1] if oldest_first else shown), len(rows) > top


def requests_of(
    account: Account, requests: Collection[str], verbs: Collection[Verb], since: datetime, until: datetime
) -> set[str]:
    """Return those of the requests, GUIDs, that are recorded as activities of these kinds between two times."""
    kinds = Q(verb__in=verbs) | Q(verb=Verb.UNDO, detail__verb__in=list(verbs))
    written = {spelled: request for request in requests for spelled in (request, request.replace("-", ""))}
    found = Activity.objects.filter(
        kinds, account=account, request_id__in=written, at__gte=since, at__lt=until
    )
    return {written[spelled] for spelled in found.values_list("request_id", flat=True)}


def page(wanted: ActivityFilter, *, before: int | None = None, top: int = 50) -> ActivityPage:
    """Return the newest activities, or those just before an id.

    Each has ``changed``, the number of its entities, ``first_key``, the key of the first one, and ``has_table``.
    Searching for a part of a key or name scans the log; raises OperationTimedOut when that takes too long.
    """
    found = _shown(find(wanted))
    with limited(_PAGE_TIMEOUT):
        rows = list((found if before is None else found.filter(pk__lt=before)).order_by("-pk")[: top + 1])
    return ActivityPage(rows[:top], rows[top - 1].pk if len(rows) > top else None)


def export(wanted: ActivityFilter) -> Iterator[Activity]:
    """Yield all matching activities, newest first, reading them in batches."""
    found = find(wanted).annotate(changed=_CHANGED, sas_label=SAS_LABEL).order_by("-pk")
    last: int | None = None
    while rows := list((found if last is None else found.filter(pk__lt=last))[:_BATCH]):
        yield from rows
        last = rows[-1].pk


def find(wanted: ActivityFilter) -> QuerySet[Activity]:
    conditions = Q()
    if wanted.account_ids is not None:
        conditions &= Q(account__in=wanted.account_ids)
    if wanted.account:
        conditions &= Q(account_name=wanted.account.lower())
    if wanted.actor:
        conditions &= Q(actor__icontains=wanted.actor)
    if wanted.doors:
        conditions &= Q(actor_kind__in=wanted.doors)
    if wanted.verbs:
        # an undo is found by the verb of what it did
        conditions &= Q(verb__in=wanted.verbs) | Q(verb=Verb.UNDO, detail__verb__in=list(wanted.verbs))
    if wanted.table:
        conditions &= Q(table_name__iexact=wanted.table)
    if wanted.since is not None:
        conditions &= Q(at__gte=wanted.since)
    if wanted.until is not None:
        conditions &= Q(at__lt=wanted.until)
    if wanted.key:
        keys = Q(partition_key__contains=wanted.key) | Q(row_key__contains=wanted.key)
        conditions &= Q(Exists(EntityChange.objects.filter(keys, activity=OuterRef("pk"))))
    return Activity.objects.filter(conditions)


def _shown(activities: QuerySet[Activity]) -> QuerySet[Activity]:
    return activities.annotate(
        changed=_CHANGED, first_key=_FIRST_KEY, has_table=_HAS_TABLE, sas_label=SAS_LABEL
    ).prefetch_related("undone_by")


# subqueries, so that they run for the rows of a page only
_OF_ACTIVITY = EntityChange.objects.filter(activity=OuterRef("pk")).order_by().values("activity")
_FIRST_KEY: Final = Subquery(
    EntityChange.objects.filter(activity=OuterRef("pk"), place=0).values(
        both=JSONObject(partition_key="partition_key", row_key="row_key")
    )
)
_HAS_TABLE: Final = Exists(Table.objects.filter(pk=OuterRef("table_id"), deleted_at=None))
_CHANGED: Final = Coalesce(Subquery(_OF_ACTIVITY.annotate(number=Count("pk")).values("number")), 0)


def tidy(now: datetime) -> None:
    """Delete activities that are older than the retention period."""
    limit = now - timedelta(days=settings.ACTIVITY_DAYS)
    while _drop_before(limit):
        pass


def _drop_before(limit: datetime) -> bool:
    """Delete one batch of older activities; return whether there may be more."""
    with transaction.atomic(), allowing_deletion():
        old = list(
            Activity.objects.filter(at__lt=limit).order_by("pk").values_list("pk", flat=True)[:_TIDY_BATCH]
        )
        EntityChange.objects.filter(activity__in=old).delete()
        Activity.objects.filter(pk__in=old).delete()
    return len(old) == _TIDY_BATCH
