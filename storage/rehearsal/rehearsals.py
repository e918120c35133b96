"""Starting and stopping rehearsals, and the sets of rules of an account's own."""

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from storage.accounts.locking import lock_by_name
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.activity.undoing import check_first, find_account
from storage.domain.access.actor import SERVER, Actor, dump_actor
from storage.domain.errors import StorageError
from storage.domain.refusals import Refused
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.models import Account, Activity, Rehearsal, RehearsalRate, RehearsalSet
from storage.rehearsal.rules import dump_rules, read_rules
from storage.rehearsal.sets import READY, RuleSet
from storage.rehearsal.subject import RehearsalReason, RehearsalVerb

DURATION: Final = timedelta(hours=1)
SHORTEST: Final = timedelta(seconds=1)
LONGEST: Final = timedelta(hours=24)
LEAST_SCALE: Final = 0.0001
MOST_SCALE: Final = 100.0
MOST_SEED: Final = 2**31 - 1
SETS_LIMIT: Final = 50
KEPT: Final = timedelta(days=30)  # after the end of a rehearsal
_RATES: Final = 10_000  # that are deleted at once
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours"}
_DURATION: Final = re.compile(r"([0-9]{1,6})([smh])")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


# sets


def sets(account: Account) -> list[RuleSet]:
    """Return the ready sets, then those of the account by name."""
    own: list[RuleSet] = []
    for row in RehearsalSet.objects.filter(account=account).order_by("name"):
        with suppress(Refused):  # a newer version has written the rules
            own.append(_set(row))
    return [*READY.values(), *own]


def find_set(account: Account, name: str) -> RuleSet:
    """Return a set by its name; raises Refused."""
    if name in READY:
        return READY[name]
    row = RehearsalSet.objects.filter(account=account, name=name).first()
    if row is None:
        raise Refused(RehearsalReason.NO_SUCH_SET, set=name)
    return _set(row)


def _set(row: RehearsalSet) -> RuleSet:
    return RuleSet(row.name, row.description, read_rules(row.rules))


def save_set(account: Account, name: str, rules: object, *, text: str = "", by: Actor = SERVER) -> RuleSet:
    """Add or replace a set of an account; raises Refused."""
    check_name(name)
    read = read_rules(rules)
    with transaction.atomic():
        stored = lock_by_name(account.name)
        own = RehearsalSet.objects.filter(account=stored)
        former = own.filter(name=name).first()
        if former is None and own.count() >= SETS_LIMIT:
            raise Refused(RehearsalReason.TOO_MANY_SETS, most=SETS_LIMIT)
        before = None if former is None else _to_json(former)
        row = former or RehearsalSet(account=stored, name=name)
        row.description, row.rules = text[:2000], dump_rules(read)
        row.save()
        activity.record(
            RehearsalVerb.SET_CHANGE,
            by,
            account=stored,
            detail={"set": name},
            before=before,
            after=_to_json(row),
        )
    return _set(row)


def _to_json(row: RehearsalSet) -> dict[str, Any]:
    return {"description": row.description, "rules": row.rules}


def check_name(name: str) -> None:
    """Raise Refused for a name that rules of the account's own cannot have."""
    if name in READY:
        raise Refused(RehearsalReason.READY_SET_NAME, set=name)
    if not _NAME.fullmatch(name):
        raise Refused(RehearsalReason.SET_NAME, most=64)


def delete_set(account: Account, name: str, *, by: Actor = SERVER) -> Activity:
    """Delete a set of an account; raises Refused."""
    with transaction.atomic():
        stored = lock_by_name(account.name)
        row = RehearsalSet.objects.filter(account=stored, name=name).first()
        if row is None:
            raise Refused(RehearsalReason.NO_SUCH_SET, set=name)
        before = _to_json(row)
        row.delete()
        return activity.record(
            RehearsalVerb.SET_DELETE, by, account=stored, detail={"set": name}, before=before
        )


def undo_set_change(done: Activity, by: Actor) -> Activity | None:
    """Undo an addition, a change or a deletion of a set; raises CannotUndo, and ChangedSince."""
    account, name = find_account(done), str(done.detail["set"])
    check_first(done)
    with transaction.atomic():
        stored = lock_by_name(account.name)
        row = RehearsalSet.objects.filter(account=stored, name=name).first()
        now = None if row is None else _to_json(row)
        if now != done.after:
            raise activity.ChangedSince
        if done.before is None:
            if row is not None:
                row.delete()
        else:
            row = row or RehearsalSet(account=stored, name=name)
            row.description, row.rules = done.before["description"], done.before["rules"]
            row.save()
        verb = RehearsalVerb.SET_DELETE if done.before is None else RehearsalVerb.SET_CHANGE
        return activity.record(
            verb, by, account=stored, detail={"set": name}, before=now, after=done.before, undoes=done
        )


# rehearsals


def read_duration(text: str) -> timedelta:
    """Parse a duration such as ``90s``, ``10m`` or ``2h``; raises Refused."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise Refused(RehearsalReason.DURATION_MALFORMED)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def running(account: Account, now: datetime | None = None) -> Rehearsal | None:
    """Return the rehearsal of an account that has not ended."""
    now = now or timezone.now()
    return Rehearsal.objects.filter(account=account, stopped_at=None, ends_at__gt=now).first()


def running_at(account: Account, moment: datetime) -> Rehearsal | None:
    """Return the rehearsal of an account that ran at a moment."""
    started = Rehearsal.objects.filter(account=account, started_at__lte=moment, ends_at__gt=moment)
    return started.exclude(stopped_at__lte=moment).order_by("-started_at").first()


def of_account(account: Account) -> QuerySet[Rehearsal]:
    """Return all rehearsals of an account, the newest first."""
    return Rehearsal.objects.filter(account=account).order_by("-started_at", "-pk")


def before(rehearsal: Rehearsal) -> Rehearsal | None:
    """Return the previous rehearsal with the same set and scope."""
    alike = of_account(rehearsal.account).filter(
        set_name=rehearsal.set_name, table_name=rehearsal.table_name, pk__lt=rehearsal.pk
    )
    return alike.first()


def ended_at(rehearsal: Rehearsal, now: datetime | None = None) -> datetime | None:
    """Return when a rehearsal ended; None while it runs."""
    end = rehearsal.stopped_at or rehearsal.ends_at
    return end if end <= (now or timezone.now()) else None


def start(
    account: Account,
    name: str,
    *,
    rules: object = None,
    table: str = "",
    seed: int | None = None,
    scale: float = 1.0,
    duration: timedelta = DURATION,
    by: Actor = SERVER,
) -> Rehearsal:
    """Start a rehearsal of a set, or of ``rules`` in the form of JSON under a name of their own; raises Refused."""
    if not SHORTEST <= duration <= LONGEST:
        raise Refused(RehearsalReason.DURATION, least=1, most=24)
    if not LEAST_SCALE <= scale <= MOST_SCALE:
        raise Refused(RehearsalReason.SCALE, least=LEAST_SCALE, most=MOST_SCALE)
    if seed is not None and not 0 <= seed <= MOST_SEED:
        raise Refused(RehearsalReason.SEED, most=MOST_SEED)
    _check_table_name(table, account)
    if rules is not None:
        check_name(name)
    chosen = read_rules(rules) if rules is not None else find_set(account, name).rules
    with invalidating_catalogs():
        stored = lock_by_name(account.name)
        if stored.protected:
            raise Refused(RehearsalReason.PROTECTED_NOT_REHEARSED, account=stored.name)
        if not stored.may_rehearse:
            raise Refused(RehearsalReason.MAY_NOT_REHEARSE, account=stored.name)
        now = timezone.now()
        other = running(stored, now)
        if other is not None:
            raise Refused(RehearsalReason.REHEARSAL_RUNS, set=other.set_name)
        made = Rehearsal.objects.create(
            account=stored,
            set_name=name,
            rules=dump_rules(chosen),
            table_name=table,
            seed=secrets.randbelow(1_000_000) if seed is None else seed,
            scale=scale,
            started_at=now,
            ends_at=now + duration,
            started_by=dump_actor(by),
        )
        activity.record(RehearsalVerb.START, by, account=stored, detail=_detail(made))
    return made


def _check_table_name(table: str, account: Account) -> None:
    try:
        if table:
            fold_table_name(table, AccountKind(account.kind))
    except StorageError:
        raise Refused(RehearsalReason.TABLE_NAME, table=table) from None


def stop(rehearsal: Rehearsal, *, by: Actor = SERVER) -> bool:
    """Stop a rehearsal; return False if it has ended."""
    now = timezone.now()
    with invalidating_catalogs():
        stopped = Rehearsal.objects.filter(pk=rehearsal.pk, stopped_at=None, ends_at__gt=now)
        if not stopped.update(stopped_at=now):
            return False
        activity.record(RehearsalVerb.STOP, by, account=rehearsal.account, detail=_detail(rehearsal))
    rehearsal.stopped_at = now
    return True


def _detail(rehearsal: Rehearsal) -> Mapping[str, object]:
    return {"set": rehearsal.set_name, "rehearsal": rehearsal.pk, "seed": rehearsal.seed}


def tidy(now: datetime) -> None:
    """Delete rehearsals that ended long ago, with their requests, and the rates of all that have ended."""
    ended = Rehearsal.objects.filter(Q(stopped_at__lt=now) | Q(ends_at__lt=now)).values("pk")
    rates = RehearsalRate.objects.filter(rehearsal__in=ended).values_list("pk", flat=True)
    RehearsalRate.objects.filter(pk__in=list(rates[:_RATES])).delete()
    old = Rehearsal.objects.filter(Q(stopped_at__lt=now - KEPT) | Q(ends_at__lt=now - KEPT))
    Rehearsal.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:100])).delete()
