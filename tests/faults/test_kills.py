"""A process is killed in the middle of a long operation: nothing stays that another process does not end."""

import time

import pytest
from django.conf import settings
from django.db import connection

from console.entities import query_deletion
from storage.domain.entities.entity import read_stored
from storage.domain.filters.query import EntityQuery
from storage.models import Account, Activity, Branch, LongOperation, PropertyIndex, Table
from storage.operations import accounts, entities, indexes, policies, recovery, tables, undo
from storage.sql.django import fetch
from tests import emptying
from tests.faults.kill_cases import ADA, CASES
from tests.faults.killed import FEW, Forge

POINTS = 20  # at which each operation is killed
ENDED_TIMEOUT = 60

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def forge(django_db_setup):
    database = connection.settings_dict
    with Forge(database, settings.SERVER_SECRET.decode()) as forge:
        yield forge


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(accounts, "_DROPPED_TOGETHER", FEW)
    monkeypatch.setattr(query_deletion, "_STEP", FEW)


@pytest.fixture(params=CASES)
def name(request):
    return request.param


def state():
    """Everything but keys, times and numbers: what two runs have in common."""
    return {
        account.name: {
            "kind": account.kind,
            "enabled": account.enabled,
            "properties": account.service_properties,
            "branch": [
                (it.source_name, it.origin is not None, it.originals)
                for it in Branch.objects.filter(account=account)
            ],
            "tables": {table.name: content(table) for table in Table.objects.own().filter(account=account)},
        }
        for account in Account.objects.all()
    }


def content(table):
    rows = {
        tuple(it.key): dict(read_stored(it).properties)
        for page in entities.all_pages(table, EntityQuery())
        for it in page
    }
    masked = table.account.name == "twig" and table.name == "Customers"
    return (
        sorted(rows) if masked else rows,
        policies.stored(table.account_id, table.folded_name) if table.account.kind == "storage" else [],
        list(PropertyIndex.objects.filter(table=table).values_list("name", "state", "error")),
    )


def relations():
    found = fetch(
        "SELECT substring(relname FROM '[0-9]+')::bigint FROM pg_class WHERE relname ~ '^entity_[0-9]+$'"
    )
    return {pk for (pk,) in found}


def check_nothing_is_left():
    """Neither operations, nor relations of no table; older ones are those of other tests."""
    known = Table.objects.values_list("pk", flat=True)
    assert not LongOperation.objects.exists()
    assert not {pk for pk in relations() if pk > OLDER[0]} - set(known)


OLDER = [0]


def run_jobs():
    recovery.run()
    indexes.run_pending()
    tables.drop_expired_tables()


def wait_for_end():
    """Wait until PostgreSQL has noticed the deaths of the clients that were killed."""
    deadline = time.monotonic() + ENDED_TIMEOUT
    others = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    while fetch(others) != [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def begin(case):
    emptying.empty()
    OLDER[0] = max(relations(), default=0)
    case.prepare()
    connection.close()  # its caches of plans are not the subject
    return state(), Activity.objects.latest("pk").pk


def take_back(case, since):
    """Undo what was done, latest first."""
    verbs = case.undone
    found = Activity.objects.filter(pk__gt=since, actor="ada", verb__in=verbs).order_by("-pk")
    for done in list(found):
        undo.undo(done, ADA)


def test_killed_at_any_moment(name, forge, record_property):
    case = CASES[name]
    before, _ = begin(case)
    number = forge.run(name)
    after = state()
    assert after != before
    check_nothing_is_left()

    points = sorted({1 + number * place // POINTS for place in range(POINTS)})
    outcomes = {}
    for place, point in enumerate(points):
        outcome = kill(case, name, point, forge, before=before, after=after, is_repeated=place % 2 == 0)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(f"\n{name}: {number} statements, {len(points)} kills, {outcomes}")


def kill(case, name, point, forge, *, before, after, is_repeated):
    start, since = begin(case)
    assert start == before
    assert forge.run(name, after=point) is None
    wait_for_end()
    if is_repeated:
        case.request()
        if LongOperation.objects.exists():
            run_jobs()  # records the run that was killed
        assert state() == after
        check_nothing_is_left()
        return "finished by the same request"
    run_jobs()
    check_nothing_is_left()
    found = state()
    if found == before:
        return "removed or not begun"
    if found == after:
        return "finished before or by the job"
    if case.undone:
        take_back(case, since)
        assert state() == before
        return "undone"
    case.request()
    assert state() == after
    return "finished after the job"
