"""Tables over several nodes, with stand-ins for the functions of Citus; distributed relations have their real form."""

import re
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from storage.accounts import account_settings, accounts, removal
from storage.accounts.refusals import AccountError
from storage.branches import branches
from storage.cluster import ddl, distribution, function, relations
from storage.cluster.distribution import DistributionError
from storage.cluster.subject import FORM, ClusterVerb
from storage.compare import sides
from storage.compare.side_names import SideName
from storage.core import registry
from storage.core.account_settings import SETTINGS
from storage.core.relation_forms import LOCAL
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.entities.moments import Moment
from storage.domain.entities.restoring import Effect
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    KeyValueTooLarge,
    OutOfRangeInput,
    ResourceNotFound,
    ServerBusy,
    UpdateConditionNotSatisfied,
)
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.history.recorded import Op
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, Precondition
from storage.domain.values.kinds import AccountKind
from storage.domain.values.ticks import to_datetime, to_ticks
from storage.entities import edits, entities, images
from storage.history import changes, feed, past, versions
from storage.history.feed import Feed
from storage.history.subject import HistoryVerb
from storage.jobs import running
from storage.models import Activity, Table
from storage.relations import history
from storage.runtime import doctor
from storage.snapshots import snapshots
from storage.snapshots.snapshots import SnapshotError
from storage.sql import entities as statements
from storage.sql import pages
from storage.sql.django import execute, fetch, run
from storage.sql.failures import failure
from storage.sql.forms import form_of_relation, history_of, relation_name
from storage.sql.relations import deleted_name, relation_of
from storage.tables import table_list, tables
from storage.undo import data_undo, undo
from storage.undo.outcome_jobs import outcome_of
from tests.sql import citus

KEY = EntityKey("p", "r")
ADA = Actor(ActorKind.USER, "ada")


@pytest.fixture
def cluster(db):
    relations.can_distribute.cache_clear()
    citus.install()
    yield
    relations.can_distribute.cache_clear()


@pytest.fixture
def account(db):
    return accounts.add("acme")


@pytest.fixture
def table(cluster, account):
    return tables.create(account, "people")


@pytest.fixture
def write(table):
    """Return `write(change)`, which writes and records a change as the service does."""

    def write(change):
        recorder = history.recorder(table.account, ADA)
        with transaction.atomic():
            return run(statements.change(relation_of(table), change, recorder))

    return write


def entity(key=KEY, **values):
    return Entity(key, {name: EdmValue(Edm.INT32, value) for name, value in values.items()})


def content(table):
    """Return the contents of a table's entities by row key."""
    return {
        stored.key.row_key: stored.content
        for page in entities.all_pages(table, EntityQuery())
        for stored in page
    }


def kinds(table, key=KEY):
    return [version.kind for version in versions.page(table, key).entries]


def test_a_table_is_distributed_and_gathered(table, write):
    name = f"distributed_{table.pk}"
    write(Insert(entity(A=1)))
    write(Update(entity(A=2), ANY, merge=False))
    before = content(table)
    distribution.distribute(table, by=ADA)
    assert citus.calls() == [
        *[f"function {it} by  beside default" for it in helpers()],
        f"table {name} by pk beside none",
        f"table {name}_history by pk beside {name}",
        f"function {name}_change_set by p beside {name}",
        f"free {name}_history",
        f"free {name}",
    ]
    assert Table.objects.get(pk=table.pk).distributed
    assert content(table) == before

    write(Update(entity(B=3), ANY, merge=True))
    write(Delete(KEY, ANY))
    write(Insert(entity(A=4)))
    stored = content(table)
    assert kinds(table) == ["insert", "delete", "update", "update", "insert"]
    assert fetch(f"SELECT count(*) FROM {name}_history") == [(3,)]

    distribution.undistribute(table, by=ADA)
    assert citus.calls() == [f"gather {name}_history", f"gather {name}"]
    assert not Table.objects.get(pk=table.pk).distributed
    assert content(table) == stored
    write(Update(entity(A=5), ANY, merge=False))
    assert kinds(table) == ["update", "insert", "delete", "update", "update", "insert"]
    verbs = Activity.objects.filter(table=table).order_by("pk").values_list("verb", "actor")
    assert list(verbs)[-2:] == [(ClusterVerb.DISTRIBUTE, "ada"), (ClusterVerb.UNDISTRIBUTE, "ada")]


def helpers():
    """Return the SQL functions that the other nodes need, as the stand-ins have received them."""
    result = fetch(
        "SELECT p.proname FROM pg_dist_object AS d JOIN pg_proc AS p ON p.oid = d.objid"
        " WHERE d.distribution_argument_index IS NULL ORDER BY p.oid::regprocedure::text"
    )
    names = [name for (name,) in result]
    assert {"entity_without", "entity_excess", "cosmos_entity_excess", "entity_projection"} <= set(names)
    assert not any(name.endswith("_change_set") or name == "entity_make_room" for name in names)
    return names


def test_versions_are_paged_over_both_histories(table, write):
    write(Insert(entity(A=0)))
    for number in range(1, 4):
        write(Update(entity(A=number), ANY, merge=False))
    distribution.distribute(table)
    for number in range(4, 8):
        write(Update(entity(A=number), ANY, merge=False))
    whole = versions.page(table, KEY).entries
    assert [version.after.content for version in whole] == [
        f'\n,"A":{number}'.encode() for number in range(7, -1, -1)
    ]
    assert all(version.actor.name == "ada" for version in whole)
    for top in range(1, 8):  # also pages that end where one of the histories does
        paged, first = [], None
        while True:
            page = versions.page(table, KEY, first=first, top=top)
            paged += page.entries
            if page.next is None:
                break
            first = page.next
        assert paged == whole


def test_changes_of_an_account_are_listed_while_a_table_is_dropped(table, write):
    other = tables.create(table.account, "other")
    for it in (table, other):
        edits.apply(it, [Insert(entity(A=1))], by=ADA)
        distribution.distribute(it)
        edits.apply(it, [Upsert(entity(A=2), merge=False)], by=ADA)
    execute(f"DROP TABLE {history_of(relation_of(other))}")  # its row in storage_table goes a moment later
    assert changes.count_by_table(table.account, changes.ChangeFilter()) == {table.pk: 2, other.pk: 1}
    assert len(changes.page(table.account, changes.ChangeFilter()).entries) == 3


def test_changes_of_a_distributed_table_succeed_and_fail_as_elsewhere(table, write):
    distribution.distribute(table)
    written = write(Upsert(entity(A=1), merge=False))
    with pytest.raises(EntityAlreadyExists):
        write(Insert(entity()))
    for refused in (
        Update(entity(), Precondition(written + 1), merge=False),
        Update(entity(), Precondition(written + 1), merge=True),
        Delete(KEY, Precondition(written + 1)),
    ):
        with pytest.raises(UpdateConditionNotSatisfied):
            write(refused)
    other = entity(EntityKey("p", "none"))
    for refused in (Update(other, ANY, merge=False), Update(other, ANY, merge=True), Delete(other.key, ANY)):
        with pytest.raises(ResourceNotFound):
            write(refused)
    assert write(Update(entity(B=2), Precondition(written), merge=True)) > written
    write(Upsert(entity(C=3), merge=True))
    assert content(table) == {"r": b'\n,"A":1\n,"B":2\n,"C":3'}
    assert kinds(table) == ["update", "update", "insert"]


def test_entities_are_edited_in_several_partitions_at_once(table):
    distribution.distribute(table)
    keys = [EntityKey(partition, str(number)) for partition in "ab" for number in range(8)]
    edits.apply(table, [Insert(entity(key, A=1)) for key in keys], by=ADA)
    edits.apply(table, [Update(entity(key, B=2), ANY, merge=True) for key in keys], by=ADA)
    assert [it.key for it in entities.get_many(table, reversed(keys))] == keys
    edits.delete(table, keys[:-1], by=ADA)
    assert list(content(table)) == ["7"]
    with pytest.raises(ChangeSetError) as failed:
        edits.apply(table, [Insert(entity(EntityKey("b", "8"))), Insert(entity(keys[-1]))], by=ADA)
    assert (failed.value.index, type(failed.value.error)) == (1, EntityAlreadyExists)


def test_statements_for_the_stale_local_form_fail(table, write):
    """The service looks the table up again then."""
    stale = Table.objects.get(pk=table.pk)
    distribution.distribute(table)
    with pytest.raises(errors_of("TableNotFound")):
        run(statements.change(relation_of(stale), Insert(entity()), history.recorder(table.account, ADA)))


def errors_of(name):
    return type(failure("42P01", "")) if name == "TableNotFound" else None


def test_long_keys_are_refused_before_and_after(table, write, account):
    long = EntityKey("p" * 1500, "r" * 1500)
    write(Insert(entity(long)))
    with pytest.raises(DistributionError, match=r"keys take more than 2,600 bytes"):
        distribution.distribute(table)
    assert not Table.objects.get(pk=table.pk).distributed
    write(Delete(long, ANY))
    distribution.distribute(Table.objects.get(pk=table.pk))
    table.refresh_from_db()
    for change in (Insert(entity(long)), Upsert(entity(long), merge=True)):
        with pytest.raises(KeyValueTooLarge):
            write(change)
    with pytest.raises(ChangeSetError):
        edits.apply(table, [Insert(entity(long))], by=ADA)


def test_a_failed_distribution_leaves_a_local_table(table, write):
    write(Insert(entity(A=1)))
    execute("DROP FUNCTION create_distributed_function")
    execute("INSERT INTO pg_dist_object SELECT 'pg_proc'::regclass, oid FROM pg_proc")
    with pytest.raises(DistributionError, match="could not be distributed"):
        distribution.distribute(table)
    assert not Table.objects.get(pk=table.pk).distributed
    write(Update(entity(A=2), ANY, merge=False))
    assert kinds(table) == ["update", "insert"]
    assert fetch("SELECT count(*) FROM pg_dist_partition") == [(0,)]


def test_only_a_coordinator_distributes(account):
    table = tables.create(account, "people")
    with pytest.raises(DistributionError, match="coordinator"):
        distribution.distribute(table)
    with pytest.raises(AccountError, match="coordinator"):
        account_settings.change(account, distributes=True)


def test_refuses_the_present_state_of_distribution(table):
    with pytest.raises(DistributionError, match="is not distributed"):
        distribution.undistribute(table)
    distribution.distribute(table)
    with pytest.raises(DistributionError, match="distributed already"):
        distribution.distribute(table)


def test_a_deleted_table_is_restored_with_its_function(table, write):
    distribution.distribute(table)
    write(Insert(entity(A=1)))
    citus.calls()
    tables.delete(table.account, "people", keep=timedelta(days=1))
    deleted = Table.objects.get(pk=table.pk)
    assert kinds(deleted) == ["insert"]
    tables.restore(table)
    name = f"distributed_{table.pk}"
    assert citus.calls() == [f"function {name}_change_set by p beside deleted_{name}"]
    write(Update(entity(A=2), ANY, merge=False))
    assert kinds(table) == ["update", "insert"]

    tables.delete(table.account, "people", keep=timedelta(0))
    tables.drop_expired_tables()
    assert fetch("SELECT count(*) FROM pg_class WHERE relname LIKE %s", f"%{name}%") == [(0,)]
    assert fetch("SELECT count(*) FROM pg_proc WHERE proname LIKE %s", f"{name}%") == [(0,)]


def test_a_deleted_relation_keeps_its_form():
    assert form_of_relation(deleted_name(FORM.relation(17))) is FORM
    assert form_of_relation(deleted_name(relation_name(17))) is LOCAL


def test_processes_notice_the_setting():
    """Catalogs keep the form of an account's new tables."""
    assert all(SETTINGS[form.account_column].is_in_catalog for form in registry.relation_forms())


def test_an_account_setting_distributes_its_new_tables(cluster, account):
    account_settings.change(account, distributes=True)
    table = tables.create(account, "people")
    assert table.distributed and relations.is_spread(table)
    edits.apply(table, [Insert(entity(A=1))], by=ADA)
    assert kinds(table) == ["insert"]
    account_settings.change(account, distributes=False)
    assert not tables.create(account, "others").distributed
    removal.remove("acme", with_tables=True)
    left = fetch("SELECT relname FROM pg_class WHERE relname ~ %s", f"^distributed_{table.pk}(_|$)")
    assert left == []


def test_operations_impossible_on_several_nodes_are_refused(table, write, account):
    write(Insert(entity(A=1)))
    began = Moment(to_ticks(timezone.now()))
    position = feed.present_token(Feed(account.pk))
    snapshot = snapshots.take(account, "before")
    distribution.distribute(table)
    write(Update(entity(A=2), ANY, merge=False))

    with pytest.raises(OutOfRangeInput, match="kept since"):
        past.find(table, began)
    with pytest.raises(feed.TableWithoutFeed):
        feed.read(Feed(account.pk), position)
    with pytest.raises(SnapshotError):
        snapshots.take(account, "now")
    with pytest.raises(sides.SideNotFound):
        sides.find(SideName("acme"), account)
    with pytest.raises(AccountError):
        branches.create(account, branches.BranchRequest("twig"))
    automatic = snapshots.take_automatic(account, "daily", snapshots.SnapshotReason.SCHEDULE)
    assert (automatic.is_whole, automatic.tables.count()) == (False, 0)
    # the earlier snapshot was copied and does not see later changes
    assert snapshot.tables.get().is_copied
    then = [it.content for it in entities.page(table, EntityQuery(), past_of(snapshot)).entities]
    assert b'\n,"A":2' not in then

    distribution.undistribute(table)
    assert past.find(table, began)
    # a snapshot of this test's transaction may hold its own changes for seen: so from the oldest
    assert feed.read(Feed(account.pk), feed.OLDEST)[0].changes[-1].op == "u"


def past_of(snapshot):
    from storage.relations import snapshot_copies

    return snapshot_copies.past_of(snapshot.tables.get())


def test_a_job_measures_and_forgets(table, write, account):
    write(Insert(entity(A=1)))
    distribution.distribute(table)
    write(Update(entity(A=2), ANY, merge=False))
    execute(f"ANALYZE {relation_of(table)}")
    distribution.tidy(timezone.now())
    size = table_list.sizes([table])["people"]
    assert (size.entities, size.bytes > 0) == (1, True)
    assert table_list.disk_usage(Table.objects.get(pk=table.pk)).entities > 0
    assert kinds(table) == ["update", "insert"]
    [(stand_in,)] = fetch("SELECT pg_get_functiondef('run_command_on_all_nodes'::regproc)")
    execute(stand_in.replace("success := true", "success := false"))
    distribution.tidy(timezone.now())  # while a node is down
    assert table_list.sizes([table])["people"] == size
    execute(stand_in)

    distribution.tidy(timezone.now() + timedelta(days=8))
    assert kinds(table) == ["insert"]
    distribution.undistribute(table)
    table.refresh_from_db()
    with pytest.raises(OutOfRangeInput):
        past.find(table, Moment(to_ticks(timezone.now())))


def test_the_nodes_are_asked_once_for_all_tables(table, account, write):
    for name in ("others", "more"):
        distribution.distribute(tables.create(account, name))
    distribution.distribute(table)
    write(Insert(entity(A=1)))
    execute(f"ANALYZE {relation_of(table)}")
    asked = []

    def catch(run, query, *arguments):
        asked.append(query)
        return run(query, *arguments)

    with connection.execute_wrapper(catch):
        distribution.tidy(timezone.now())
    on_nodes = [text for text in asked if re.search(r"run_command_on|citus_total|citus_table", text)]
    assert len(on_nodes) == 1
    table.refresh_from_db()
    assert (table.distributed_rows, table.distributed_bytes > 0) == (1, True)


def test_functions_of_older_servers_are_renewed(table, write):
    distribution.distribute(table)
    relation = relation_of(table)
    text = function.create_delegated_function(relation, AccountKind.STORAGE)
    execute(f"DROP FUNCTION {relation}_change_set")
    execute(text.replace(" AS $$", " AS $$ -- another text", 1))
    citus.calls()
    distribution.tidy(timezone.now())
    assert f"function {relation}_change_set by p beside {relation}" in citus.calls()
    write(Insert(entity(A=1)))
    with pytest.raises(EntityAlreadyExists):
        write(Insert(entity(A=1)))
    distribution.tidy(timezone.now())
    assert not [call for call in citus.calls() if call.startswith("function")]


def test_a_table_is_deleted_in_sequential_mode(table, write):
    """A read of all shards before would keep the transaction from changing the function."""
    distribution.distribute(table)
    write(Insert(entity(A=1)))
    order = []

    def catch(run, query, *arguments):
        order.extend(re.findall(r"sequential|SELECT 1 FROM distributed_|DROP FUNCTION|RENAME", query))
        return run(query, *arguments)

    with connection.execute_wrapper(catch):
        tables.delete(table.account, "people")
    assert order[:2] == ["sequential", "SELECT 1 FROM distributed_"]
    assert order.index("DROP FUNCTION") < order.index("RENAME")


def test_the_doctor_reports_problems(table, write):
    execute("INSERT INTO pg_dist_node VALUES ('a', 5432, 'primary', true, true, true)")
    assert severities() == ["ok", "ok", "warning"]  # the other nodes lack functions
    distribution.distribute(table)
    execute(f"TRUNCATE {relation_of(table)}")
    assert severities() == ["ok", "ok"]
    execute("UPDATE pg_dist_object SET force_delegation = false")
    execute("INSERT INTO pg_dist_node VALUES ('b', 5432, 'primary', true, true, false)")
    other = tables.create(table.account, "others")
    execute(f"SELECT create_distributed_table('{relation_of(other)}', 'pk', colocate_with := 'none')")
    assert severities() == ["ok", "ok", "error", "error", "error"]
    unreachable = [it.text for _, it in doctor.examine() if "cannot be reached" in it.text]
    assert [text.split()[0] for text in unreachable] == ["b:5432"]  # a, which does not reach b, is up
    with pytest.raises(SystemExit):
        call_command("doctor", json=True)


def severities():
    parts = ("database", "cluster")
    return [finding.severity.value for part, finding in doctor.examine() if part in parts]


def test_commands(table, capsys):
    call_command("distribute", "acme/people")
    assert relations.is_spread(tables.get(table.account, "people"))
    call_command("undistribute", "acme/people")
    assert capsys.readouterr().out == "acme/people is distributed.\nacme/people is on the coordinator.\n"
    account_settings.change(table.account, distributes=True)
    call_command("account", "list")
    assert capsys.readouterr().out.rstrip().endswith("  distributes")
    for wrong in ("acme/nothing", "nobody/people", "acme/people"):
        with pytest.raises(CommandError):
            call_command("undistribute", wrong)


def test_changes_are_listed_with_those_of_others(table, write, account):
    other = tables.create(account, "others")
    write(Insert(entity(A=1)))
    distribution.distribute(table)
    write(Update(entity(A=2), ANY, merge=False))
    write(Update(entity(A=3), ANY, merge=True))
    write(Delete(KEY, ANY))
    edits.apply_one(other, Insert(entity(A=9)), by=ADA)
    everything, of_table = changes.ChangeFilter(), changes.ChangeFilter(table="people")
    assert sum(it.inserted + it.changed + it.deleted for it in changes.page(account, everything).entries) == 5
    assert changes.count_by_table(account, everything) == {table.pk: 4, other.pk: 1}
    assert changes.count_by_table(account, of_table) == {table.pk: 4}
    assert [(it.actor.name, it.number) for it in changes.callers(account, of_table)] == [("ada", 4)]
    now = timezone.now()
    buckets = changes.histogram(account, of_table, now - timedelta(minutes=5), now + timedelta(minutes=5), 3)
    assert sum(it.total for it in buckets) == 4
    result = changes.with_images(account, table, of_table, 10)
    images = [(it.before and it.before.content, it.after and it.after.content) for it in result]
    assert images == [(b'\n,"A":1', b'\n,"A":2'), (b'\n,"A":2', b'\n,"A":3'), (b'\n,"A":3', None)]


def test_edits_are_shown_and_undone_whether_made_before_or_since(table):
    before = edits.apply(table, [Insert(entity(EntityKey("a", "1"), A=1))], by=ADA).activity
    distribution.distribute(table)
    table.refresh_from_db()
    since = edits.apply(table, [Insert(entity(EntityKey("b", "1"), A=1))], by=ADA).activity
    assert [[(it.key, it.kind) for it in changes.made_by(done)] for done in (before, since)] == [
        [(EntityKey("a", "1"), "insert")],
        [(EntityKey("b", "1"), "insert")],
    ]
    for done in (before, since):
        undo.undo(done, ADA)
    assert content(table) == {}


def undo_of(table, **selection):
    """Undo what is selected, after a look that has to say the same."""
    criteria = changes.ChangeFilter(table=table.name, **selection)
    foreseen = data_undo.preview(table.account, criteria)
    outcome = outcome_of(running.complete(data_undo.request(table.account, criteria), by=ADA))
    assert outcome.detail() == foreseen.detail()
    return {effect.value: outcome.number(effect) for effect in Effect if outcome.number(effect)}


def test_changes_are_undone_whether_made_before_or_since(table, write):
    other = EntityKey("q", "s")
    inserted = write(Insert(entity(A=1)))
    distribution.distribute(table)
    table.refresh_from_db()
    write(Insert(entity(other, A=1)))
    update = write(Update(entity(A=2), ANY, merge=False))
    deletion = write(Delete(other, ANY))
    assert undo_of(table, ops=(Op.DELETE,)) == {"inserted": 1}
    assert undo_of(table, numbers=(deletion,)) == {"skipped": 1}  # done already
    assert undo_of(table, numbers=(update,)) == {"changed": 1}
    assert content(table) == {"r": b'\n,"A":1', "s": b'\n,"A":1'}
    assert kinds(table, other) == ["insert", "delete", "insert"]

    first = to_datetime(inserted + 10)
    assert undo_of(table, until=first) == {"skipped": 1}  # it has newer work
    write(Insert(entity(EntityKey("z", "z"), A=1)))
    latest = versions.page(table, EntityKey("z", "z")).entries[0]
    assert undo_of(table, numbers=(latest.sequence,)) == {"deleted": 1}
    done = Activity.objects.filter(verb=HistoryVerb.REVERT).order_by("pk").last()
    assert (done.actor, done.table_id, done.detail["deleted"]) == ("ada", table.pk, 1)


def test_changes_are_undone_together_where_nothing_newer_was_made(table, write):
    keys = [EntityKey(partition, row) for partition in "pq" for row in "abc"]
    for key in keys[:4]:
        write(Insert(entity(key, A=1)))
    eve = Actor(ActorKind.USER, "eve")
    edits.apply(table, [Update(entity(keys[0], A=2), ANY, merge=False)], by=eve)
    distribution.distribute(table)
    table.refresh_from_db()
    edits.apply(table, [Update(entity(key, A=3), ANY, merge=True) for key in keys[:3]], by=eve)
    edits.apply(table, [Insert(entity(key, A=3)) for key in keys[4:]], by=eve)
    edits.delete(table, [keys[3]], by=eve)
    write(Update(entity(keys[2], A=4), ANY, merge=False))  # newer work
    assert undo_of(table, caller="eve") == {"inserted": 1, "changed": 2, "deleted": 2, "skipped": 1}
    now = {stored.key: stored.content for stored in entities.get_many(table, keys)}
    assert now == {key: b'\n,"A":%d' % (4 if key is keys[2] else 1) for key in keys[:4]}

    done = Activity.objects.filter(verb=HistoryVerb.REVERT).latest("pk")
    assert (done.actor, done.detail["rows"]) == ("ada", 5)
    running.complete(data_undo.request_revert(done), by=ADA)
    again = {stored.key: stored.content for stored in entities.get_many(table, keys)}
    assert again == {key: b'\n,"A":%d' % (4 if key is keys[2] else 3) for key in keys if key is not keys[3]}


def test_a_chunk_of_an_undo_is_written_again_if_another_request_was_faster(table, write, monkeypatch):
    """Its partitions are written together or not at all."""
    distribution.distribute(table)
    table.refresh_from_db()
    for partition in "pq":
        write(Insert(entity(EntityKey(partition, "r"), A=1)))
    criteria = changes.ChangeFilter(table="people")
    job = data_undo.request(table.account, criteria)
    write(Update(entity(EntityKey("q", "r"), A=2), ANY, merge=True))
    judge = images.judge

    def judge_as_before(relation, source):
        monkeypatch.undo()
        return [it._replace(effect=Effect.DELETED, reason=None) for it in judge(relation, source)]

    monkeypatch.setattr(images, "judge", judge_as_before)
    outcome = outcome_of(running.complete(job, by=ADA))
    assert (outcome.number(Effect.DELETED), outcome.skipped) == (1, 1)
    assert [kinds(table, EntityKey(it, "r")) for it in "pq"] == [["delete", "insert"], ["update", "insert"]]


def test_moments_are_read(table, write):
    keys = [EntityKey(partition, row) for partition in "pq" for row in "ab"]
    write(Insert(entity(keys[0], A=0)))
    distribution.distribute(table)
    table.refresh_from_db()
    with pytest.raises(OutOfRangeInput, match="future"):
        past.find(table, Moment(to_ticks(timezone.now() + timedelta(hours=1))))
    states, moments = [], []

    def note():
        states.append({it.key: it.content for it in entities.get_many(table, keys)})
        moments.append(past.closed_present())

    note()
    edits.apply(table, [Upsert(entity(key, A=1), merge=False) for key in keys], by=ADA)
    note()
    edits.delete(table, keys[1:3], by=ADA)
    note()
    edits.apply(table, [Insert(entity(keys[1], A=2)), Update(entity(keys[0], A=2), ANY, merge=True)], by=ADA)
    note()
    assert len({str(it) for it in states}) == 4
    for state, moment in zip(states, moments, strict=True):
        then = past.find(table, moment)
        page = entities.page(table, EntityQuery(), then)
        assert [(it.key, it.content) for it in page.entities] == sorted(state.items())
        assert [it.content for it in entities.get_many(table, keys, then)] == [
            state[it] for it in sorted(state)
        ]
    tables.delete(table.account, "people", keep=timedelta(days=1))
    table.refresh_from_db()
    then = past.find(table, moments[1])
    assert {it.key: it.content for it in entities.page(table, EntityQuery(), then).entities} == states[1]


def test_a_down_node_is_not_a_server_error(table):
    """It answers 503 then; a job goes on with other tables."""
    distribution.distribute(table)
    tables.delete(table.account, "people", keep=timedelta(days=1))
    execute(
        "CREATE OR REPLACE FUNCTION create_distributed_function(f regprocedure, argument text DEFAULT NULL,"
        " colocate_with text DEFAULT 'default', force_delegation boolean DEFAULT NULL) RETURNS void"
        " LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'connection to the remote node failed' USING ERRCODE = '08006'; END $$"
    )
    with pytest.raises(ServerBusy), transaction.atomic():
        tables.restore(table)
    assert [it.name for it in tables.deleted(table.account)] == ["people"]


@pytest.mark.parametrize("point", ["to_regproc", "create_distributed_table('distributed"])
def test_a_command_reports_a_lost_coordinator(table, point):
    """Let the query fail first, then all that follow, including those of the repair."""
    failed = []

    def end(run, query, *arguments):
        if failed:
            raise InterfaceError("the connection is closed")
        if point in query:
            failed.append(query)
            raise OperationalError("server closed the connection unexpectedly\n\tThis probably means")
        return run(query, *arguments)

    with (
        connection.execute_wrapper(end),
        pytest.raises(CommandError, match=r"server closed|connection is closed"),
    ):
        call_command("distribute", "acme/people")
    connection.set_rollback(False)


LOST = """
CREATE SEQUENCE attempts;
ALTER FUNCTION create_distributed_function RENAME TO create_on_nodes;
CREATE FUNCTION create_distributed_function(
    f regprocedure, argument text DEFAULT NULL, colocate_with text DEFAULT 'default',
    force_delegation boolean DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    IF argument IS NOT NULL AND nextval('attempts') <= {failures} THEN
        RAISE EXCEPTION 'failure on connection marked as essential: worker-1:5432' USING ERRCODE = 'XX000';
    END IF;
    PERFORM create_on_nodes(f, argument, colocate_with, force_delegation);
END $$
"""


@pytest.fixture
def lost_connections(transactional_db):
    """Return `lost_connections(2)`, which makes that many transactions fail on their old connection to a restarted
    node.
    """
    with citus.installed():
        execute("INSERT INTO pg_dist_node VALUES ('worker-1', 5432, 'primary', true, true, true)")
        yield lambda failures: execute(LOST.format(failures=failures))
        execute(
            "DROP FUNCTION create_distributed_function; DROP FUNCTION create_on_nodes; DROP SEQUENCE attempts"
        )


def test_a_transaction_on_a_lost_connection_is_retried_once(lost_connections):
    account = accounts.add("acme")
    account_settings.change(account, distributes=True)
    lost_connections(1)
    table = tables.create(account, "people")
    assert relations.is_spread(table)
    assert fetch("SELECT count(*) FROM storage_table WHERE folded_name = 'people'") == [(1,)]

    distribution.undistribute(table)
    execute("SELECT setval('attempts', 1, false)")
    distribution.distribute(table)
    assert relations.is_spread(table)

    execute("SELECT setval('attempts', 1, false)")
    tables.delete(account, "people", keep=timedelta(days=1))
    tables.restore(table)
    assert relations.is_spread(Table.objects.get(pk=table.pk))


def test_a_lost_node_is_named_and_nothing_is_created(lost_connections):
    account = accounts.add("acme")
    account_settings.change(account, distributes=True)
    lost_connections(9)
    with pytest.raises(ServerBusy, match="A node of the cluster does not answer"):
        tables.create(account, "people")
    assert not Table.objects.filter(account=account, name="people").exists()


def test_a_table_reports_its_lock_timeout(lost_connections, monkeypatch, caplog):
    lost_connections(0)
    account = accounts.add("acme")
    account_settings.change(account, distributes=True)
    hurried = ["SET LOCAL lock_timeout = '10ms'", *ddl._ALONE[1:]]
    monkeypatch.setattr(ddl, "_ALONE", hurried)
    with psycopg.connect(settings.LANES_CONNINFO) as other:
        other.execute(ddl._ALONE[1])
        with pytest.raises(ServerBusy, match="Other tables are being created or moved"):
            tables.create(account, "people")
    assert "A lock on the nodes of the cluster was waited for in vain" in caplog.text
    assert tables.create(account, "people").distributed


def test_nothing_waits_for_an_unresponsive_node(lost_connections):
    lost_connections(0)
    account = accounts.add("acme")
    account_settings.change(account, distributes=True)
    table = tables.create(account, "people")
    execute("UPDATE pg_dist_node SET is_up = false")
    for act in (
        lambda: tables.create(account, "others"),
        lambda: tables.delete(account, "people"),
        lambda: distribution.tidy(timezone.now()),
    ):
        with pytest.raises(ServerBusy):
            act()
    with pytest.raises(DistributionError, match="does not answer"):
        distribution.undistribute(table)
    assert [it.name for it in tables.listed(account)] == ["people"]


def test_few_deleted_tables_are_kept_on_nodes_and_not_for_long(table, write, account, monkeypatch):
    monkeypatch.setattr(registry, "relation_forms", lambda: (replace(FORM, most_deleted=2),))
    for name in ("first", "second", "third"):
        made = tables.create(account, name)
        edits.apply(made, [Insert(entity(A=1))], by=ADA)
        distribution.distribute(made)
        tables.delete(account, name)
    local = tables.create(account, "local")
    edits.apply(local, [Insert(entity(A=1))], by=ADA)
    tables.delete(account, "local")
    kept = {it.name: it.kept_until - it.deleted_at for it in tables.deleted(account)}
    assert kept == {
        "third": timedelta(days=1),
        "second": timedelta(days=1),
        "local": timedelta(days=account.history_days),
    }


def test_the_doctor_counts_distributed_tables(table, write, account):
    distribution.distribute(table)
    write(Insert(entity(A=1)))
    other = tables.create(account, "others")
    edits.apply(other, [Insert(entity(A=1))], by=ADA)
    distribution.distribute(other)
    tables.delete(account, "others")
    results = [it.text for part, it in doctor.examine() if part == "cluster"]
    assert "Distributed: 1 table; all others are here. Deleted and not dropped yet: 1 table." in results[0]


@pytest.mark.parametrize("before", [None, 50, 99, 100, 101, 1000], ids=str)
def test_pages_of_several_partitions_are_whole_at_any_likely_end(table, monkeypatch, before):
    """Shards send entities before a likely end, which may come too early or too late."""
    distribution.distribute(table)
    keys = sorted(EntityKey(f"p{number % 150:03}", str(number)) for number in range(330))
    edits.apply(table, [Insert(entity(key, A=1)) for key in keys], by=ADA)
    if before is not None:
        monkeypatch.setattr(pages, "likely_end", lambda name, query: pages.window_end(name, query, before))
    for bounds in (None, parse("PartitionKey ge 'p020' and PartitionKey lt 'p140'")):
        expected = [it for it in keys if bounds is None or "p020" <= it.partition_key < "p140"]
        query = EntityQuery(filter=bounds, top=100)
        read = [[stored.key for stored in page] for page in entities.all_pages(table, query)]
        assert [key for page in read for key in page] == expected
        assert {len(page) for page in read[:-1]} == {100}
