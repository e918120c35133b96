"""Activity log, written in the transaction of the activity and immutable."""

import getpass
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Coalesce, JSONObject, NullIf
from django.db.models.lookups import Contains
from django.utils import timezone

from storage.accounts.subject import AccountVerb
from storage.activity.actors import SAS_LABEL, actor_of
from storage.activity.subject import ActivityVerb
from storage.core.verbs import Verb
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.values.ticks import to_datetime, to_ticks
from storage.models import Account, Activity, EntityChange, Table
from storage.people.subject import PeopleVerb
from storage.sql.background import allowing_deletion
from storage.sql.django import limited, storable_text
from storage.sql.notify import notify_access
from storage.sql.tables import Note

_BATCH: Final = 500  # rows
# verbs that can take away a user's access; open streams then check whether they may continue
_ENDS_ACCESS: Final = frozenset(
    {
        AccountVerb.DELETE,
        PeopleVerb.API_TOKEN_REVOKE,
        PeopleVerb.MEMBER_REMOVE,
        PeopleVerb.MEMBER_SET,
        PeopleVerb.USER_CHANGE,
        PeopleVerb.USER_REMOVE,
    }
)
_PAGE_TIMEOUT: Final = timedelta(seconds=5)
_TIDY_BATCH: Final = 5_000
KEYS: Final = 100  # entities whose keys are kept with an activity
# the newest first
_ORDER: Final = ("-at", "-pk")
_CLOCKS: Final = timedelta(minutes=5)  # possible difference between our clock and the database's


class ChangedSince(Exception):
    """The target of an undo or conditional change was changed concurrently."""


class UndoneAlready(Exception):
    """The activity has already been undone, possibly by a concurrent request."""


def command_actor() -> Actor:
    """Return the operating system's user as the actor of a management command."""
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
    edited: Mapping[EntityKey, int | None] | None = None,
    recorded: Func | Sequence[int] | None = None,
) -> Activity:
    """Record an activity in the caller's transaction.

    ``edited`` has the changed entities with their new Timestamps, None for deleted ones; ``recorded`` is the
    place of the changes in the history, as Activity.recorded, or the query for it. An activity that
    ``undoes`` another gets the verb UNDO and its own verb as a detail; raises UndoneAlready.
    """
    if verb in _ENDS_ACCESS:
        notify_access()
    details = {**(detail or {}), **({"by_token": by.token} if by.token else {})}
    if undoes is not None:
        _check_not_undone(undoes)
        if verb is not ActivityVerb.UNDO:
            verb, details = ActivityVerb.UNDO, {"verb": verb, **details}
    keys = [_write_key(key, ticks) for key, ticks in islice((edited or {}).items(), KEYS)]
    done = Activity.objects.create(
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
        entities=len(edited or ()),
        keys=keys or None,
        recorded=recorded,
    )
    if isinstance(recorded, Func):
        del done.recorded  # to be read when it is needed
    return done


def note(verb: Verb, by: Actor, account_name: str) -> Note:
    """Return what ``record`` stores of an activity, for statements that record it with their change."""
    return Note(
        timezone.now(),
        verb,
        account_name,
        by.kind,
        storable_text(by.name, 256),
        storable_text(by.address, 64),
        storable_text(by.agent, 256),
        storable_text(by.request_id, 64),
        json.dumps(in_json({"by_token": by.token})) if by.token else "{}",
    )


def _write_key(key: EntityKey, ticks: int | None) -> dict[str, object]:
    return {"partition_key": key.partition_key, "row_key": key.row_key, "ticks": ticks}


def is_recorded(done: Activity) -> bool:
    """Return whether the changes of an activity are in the history."""
    return "recorded" in done.get_deferred_fields() or done.recorded is not None


def keys_of(done: Activity) -> list[EntityKey]:
    """Return the keys of the first entities that an activity changed."""
    return [EntityKey(it["partition_key"], it["row_key"]) for it in done.keys or ()]


def _check_not_undone(done: Activity) -> None:
    # locked, so that of two concurrent undos the second waits for the first
    Activity.objects.select_for_update().get(pk=done.pk)
    if is_undone(done):
        raise UndoneAlready


def is_undone(done: Activity | int) -> bool:
    """Return whether an activity was undone; an interrupted undo does not count."""
    return any(not is_interrupted(undo) for undo in Activity.objects.filter(undoes=done))


def undone_by(done: Activity) -> Activity | None:
    """Return the completed undo of an activity from its prefetched undos; None without one or if it was interrupted."""
    return next((undo for undo in done.undone_by.all() if not is_interrupted(undo)), None)


def is_interrupted(done: Activity) -> bool:
    """Return whether an activity was interrupted before it was complete."""
    return bool(done.detail.get("interrupted"))


def in_json(value: object) -> object:
    """Remove characters that PostgreSQL's JSON cannot store."""
    match value:
        case str():
            return storable_text(value, len(value))
        case Mapping():
            return {
                storable_text(name, len(name)) if isinstance(name, str) else name: in_json(member)
                for name, member in value.items()
            }
        case list() | tuple():
            return [in_json(member) for member in value]
    return value


def count_changes(done: Activity) -> int:
    """Return the number of entities that an activity changed."""
    return done.entities or done.changes.count()


def former_changes(done: Activity, *, top: int | None = None) -> list[RecordedChange]:
    """Return the first entity changes of an activity by an older version, which stored them beside it."""
    return [_read_change(done, change) for change in done.changes.order_by("place")[:top]]


def _read_change(done: Activity, change: EntityChange) -> RecordedChange:
    key = EntityKey(change.partition_key, change.row_key)

    def image(content: str | None, ticks: int | None) -> StoredEntity | None:
        if content is None or ticks is None:
            return None
        return StoredEntity(encode_entity_key(key), b"%d" % ticks, content.encode())

    before, after = image(change.before, change.ticks_before), image(change.after, change.ticks_after)
    return make_change(done, key, before, after)


def make_change(
    done: Activity, key: EntityKey, before: StoredEntity | None, after: StoredEntity | None
) -> RecordedChange:
    """Build a change of an activity from the entity before and after it."""
    op = Op.INSERT if before is None else Op.DELETE if after is None else Op.UPDATE
    ticks, table_id = to_ticks(done.at) if after is None else after.timestamp, done.table_id or 0
    return RecordedChange(0, op, done.table_name, table_id, key, ticks, actor_of(done), before, after)


def of_version(table: Table, key: EntityKey, ticks: int | None) -> Activity | None:
    """Return the latest activity that produced this Timestamp of an entity, or that deleted it if ``ticks`` is None."""
    entries = Activity.objects.filter(
        account=table.account_id, table=table, keys__contains=[_write_key(key, ticks)]
    )
    if ticks is not None:
        entries = entries.filter(at__range=_around(to_datetime(ticks)))
    return entries.annotate(sas_label=SAS_LABEL).order_by(*_ORDER).first()


def of_change(change: RecordedChange) -> Activity | None:
    """Return the activity that made a change in the history of its table."""
    found = Activity.objects.filter(table=change.table_id, entities__gt=0, at__range=_around(change.at))
    return next((it for it in found.order_by(*_ORDER) if made(it, change)), None)


def _around(moment: datetime) -> tuple[datetime, datetime]:
    return moment - _CLOCKS, moment + _CLOCKS


def made(done: Activity, change: RecordedChange | None) -> bool:
    """Return whether a change in the history of a table belongs to an activity."""
    if change is None:
        return False
    if done.recorded:
        _, first, last = done.recorded
        return bool(first <= change.sequence <= last)
    return done.recorded is not None and done.request_id == change.actor.request_id


def latest(table: Table, verb: Verb) -> Activity | None:
    """Return the latest activity of this kind on a table."""
    return Activity.objects.filter(table=table, verb=verb, account=table.account_id).order_by(*_ORDER).first()


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
    """A page of activities, newest first."""

    activities: list[Activity]
    older: int | None  # the id of the last one if more follow in the order of reading


def get(pk: int) -> Activity | None:
    return _shown(Activity.objects.filter(pk=pk)).first()


def of_numbers(pks: Collection[int]) -> list[Activity]:
    """Return the activities with these ids that exist."""
    return list(Activity.objects.filter(pk__in=pks))


def latest_of_query(saved_query: int) -> Activity | None:
    """Return the latest activity of a saved query of the console, by its primary key."""
    return Activity.objects.filter(detail__saved=saved_query).order_by(*_ORDER).first()


def undo_of(done: Activity) -> Activity:
    """Return the undo of an activity."""
    return Activity.objects.get(undoes=done)


def requests_of(criteria: ActivityFilter, verbs: Collection[Verb], requests: Collection[str]) -> set[str]:
    """Return the request GUIDs, out of ``requests``, of matching activities with these verbs."""
    kinds = Q(verb__in=verbs) | Q(verb=ActivityVerb.UNDO, detail__verb__in=list(verbs))
    written = {spelled: request for request in requests for spelled in (request, request.replace("-", ""))}
    entries = find(criteria).filter(kinds, request_id__in=written)
    return {written[spelled] for spelled in entries.values_list("request_id", flat=True)}


def page(
    criteria: ActivityFilter, *, before: int | None = None, top: int = 50, oldest_first: bool = False
) -> ActivityPage:
    """Return a page of activities, newest first: the latest, those before an id, or the oldest."""
    entries = _shown(_older(find(criteria), before))
    with limited(_PAGE_TIMEOUT):
        rows = list((entries.reverse() if oldest_first else entries)[: top + 1])
    shown = rows[:top]
    older = shown[-1].pk if len(rows) > top else None
    return ActivityPage(shown[::-1] if oldest_first else shown, older)


def _older(entries: QuerySet[Activity], before: int | None) -> QuerySet[Activity]:
    """Exclude an activity, by its id, and newer ones."""
    if before is None:
        return entries
    at = Activity.objects.filter(pk=before).values_list("at", flat=True).first()
    if at is None:
        return entries.filter(pk__lt=before)
    return entries.filter(Q(at__lt=at) | Q(at=at, pk__lt=before))


def export(criteria: ActivityFilter) -> Iterator[Activity]:
    """Yield all matching activities, newest first, reading them in batches."""
    entries = find(criteria).annotate(changed=_CHANGED, sas_label=SAS_LABEL)
    last: int | None = None
    while rows := list(_older(entries, last)[:_BATCH]):
        yield from rows
        last = rows[-1].pk


def find(criteria: ActivityFilter) -> QuerySet[Activity]:
    """Find activities, the newest first."""
    conditions = Q()
    if criteria.account_ids is not None:
        conditions &= Q(account__in=criteria.account_ids)
    if criteria.account:
        conditions &= Q(account_name=criteria.account.lower())
    if criteria.actor:
        conditions &= Q(actor__icontains=criteria.actor)
    if criteria.doors:
        conditions &= Q(actor_kind__in=criteria.doors)
    if criteria.verbs:
        # an undo is selected by the verb of its effect
        conditions &= Q(verb__in=criteria.verbs) | Q(
            verb=ActivityVerb.UNDO, detail__verb__in=list(criteria.verbs)
        )
    if criteria.table:
        conditions &= Q(table_name__iexact=criteria.table)
    if criteria.since is not None:
        conditions &= Q(at__gte=criteria.since)
    if criteria.until is not None:
        conditions &= Q(at__lt=criteria.until)
    if criteria.key:
        former = Q(partition_key__contains=criteria.key) | Q(row_key__contains=criteria.key)
        conditions &= Q(Contains(_KEYS, criteria.key)) | Q(
            Exists(EntityChange.objects.filter(former, activity=OuterRef("pk")))
        )
    return Activity.objects.filter(conditions).order_by(*_ORDER)


def _shown(activities: QuerySet[Activity]) -> QuerySet[Activity]:
    return activities.annotate(
        changed=_CHANGED, first_key=_FIRST_KEY, has_table=_HAS_TABLE, sas_label=SAS_LABEL
    ).prefetch_related("undone_by")


# no key has the character between them
_KEYS: Final = Func(
    F("keys"),
    template="""(SELECT string_agg(concat_ws(E'\\x01', it ->> 'partition_key', it ->> 'row_key'), E'\\x01')
        FROM jsonb_array_elements(%(expressions)s) AS it)""",
    output_field=TextField(),
)
_HAS_TABLE: Final = Exists(Table.objects.filter(pk=OuterRef("table_id"), deleted_at=None))
# rows of older versions too; subqueries, so that they run for the rows of a page only
_FORMER: Final = EntityChange.objects.filter(activity=OuterRef("pk")).order_by().values("activity")
_FIRST_KEY: Final = Coalesce(
    KeyTransform(0, "keys"),
    Subquery(
        EntityChange.objects.filter(activity=OuterRef("pk"), place=0).values(
            both=JSONObject(partition_key="partition_key", row_key="row_key")
        )
    ),
)
_CHANGED: Final = Coalesce(
    NullIf("entities", 0), Subquery(_FORMER.annotate(number=Count("pk")).values("number")), 0
)


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
