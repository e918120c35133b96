"""Second copies of entities: what is written, recognized, repaired and undone, in one table and in two."""

import json
from dataclasses import replace

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.accounts import account_settings, accounts
from storage.bulk_edit import bulk_edit_jobs, bulk_edit_previews, bulk_edit_work, bulk_edits
from storage.bulk_edit.bulk_edit_work import BulkEditRequest, SkippedEntity
from storage.bulk_edit.bulk_edits import BulkEditRefused, Progress
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Delete, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.editing.bulk_edit import InvalidOperation, Obstacle, ObstacleKind
from storage.entities import edits, entities
from storage.models import Activity
from storage.runtime import job_runner
from storage.tables import tables
from storage.undo import undo
from tests.bulk_edit.test_operations import ADA, edit, last, steps
from tests.examples import of_usual

pytestmark = pytest.mark.django_db(transaction=True)
HIRED = EdmValue(Edm.INT32, 2020)


@pytest.fixture
def staff():
    """Make a table of employees with their e-mail addresses."""
    table = tables.create(accounts.add("acme"), "staff")
    for number, email in (("000001", "ada"), ("000002", "bob"), ("000003", "cyd")):
        put(table, f"id_{number}", email)
    return table


def put(table, row_key, email, *, partition_key="sales", hired=HIRED):
    properties = {"Email": EdmValue(Edm.STRING, email), "Hired": hired}
    change = Upsert(Entity(EntityKey(partition_key, row_key), properties), merge=False)
    edits.apply_one(table, change, by=ADA)


def delete(table, row_key, *, partition_key="sales"):
    edits.apply_one(table, Delete(EntityKey(partition_key, row_key), ANY), by=ADA)


def content(table):
    """Return the address and the year of each entity by its key."""
    return {
        "/".join(it.key): " ".join(str(value.value) for value in it.properties.values())
        for page in entities.all_pages(table, EntityQuery())
        for it in map(read_stored, page)
    }


def request(*before, filter="RowKey ge 'id_' and RowKey lt 'id`'", **members):  # noqa: A002  as the option is called
    return BulkEditRequest(filter, (*before, {"op": "second-copy", **members}))


WITHIN = {"row_key": "'mail_' + Email"}
BESIDE = {"partition_key": "substring(Email, 0, 1)", "row_key": "Email", "table": "mails"}
REPAIR = {"replace": True, "delete_left_over": True}
COPIES = "RowKey ge 'mail_' and RowKey lt 'mail`'"


def obstacle(kind):
    return Obstacle(kind)


def test_copies_in_the_partition_are_up_to_date_a_second_time_and_undone(staff):
    before = content(staff)
    foreseen = bulk_edit_previews.preview(staff, request(**WITHIN))
    assert (foreseen.counts.copied, foreseen.matches, content(staff)) == (3, 3, before)
    assert foreseen.samples[0].key == EntityKey("sales", "mail_ada")
    done = edit(staff, request(**WITHIN), number=3)
    assert done.counts == foreseen.counts
    copies = {f"sales/mail_{it}": f"{it} 2020" for it in ("ada", "bob", "cyd")}
    assert content(staff) == {**before, **copies}
    again = edit(staff, request(**WITHIN))
    assert (again.counts.unchanged, again.counts.written, again.activity) == (3, 0, None)

    assert (done.activity.verb, done.activity.detail["copied"]) == ("entity.second-copy", 3)
    undone = undo.undo(done.activity, ADA)
    assert content(staff) == before
    undo.undo(undone, ADA)
    assert content(staff) == {**before, **copies}


def test_operations_before_change_only_the_copy_in_another_table(staff):
    before = content(staff)
    set_ = {"op": "set", "property": "Hired", "expression": "string(Hired)"}
    edit_request = request(
        {"op": "remove", "property": "Email"}, set_, row_key="pad(Hired, 6)", table="years"
    )
    assert bulk_edits.needed_capabilities(staff, edit_request) == {Capability.WRITE, Capability.MANAGE_TABLES}
    foreseen = bulk_edit_previews.preview(staff, edit_request)
    assert (foreseen.counts.copied, foreseen.counts.obstacles) == (1, {obstacle(ObstacleKind.KEY_TWICE): 2})
    assert tables.names(staff.account) == ["staff"]
    done = edit(staff, edit_request)
    assert done.counts == foreseen.counts
    years = tables.get(staff.account, "years")
    assert (content(staff), content(years)) == (before, {"sales/002020": "2020"})
    assert bulk_edits.needed_capabilities(staff, edit_request) == {Capability.WRITE}
    assert Activity.objects.filter(verb="table.create", table_name="years").get().actor == "ada"
    undo.undo(done.activity, ADA)
    assert content(years) == {}


def test_other_entities_stay_and_older_copies_are_replaced_on_demand(staff):
    edit(staff, request(**BESIDE))
    mails = tables.get(staff.account, "mails")
    put(staff, "id_000002", "bob", hired=EdmValue(Edm.INT32, 2021))
    done = edit(staff, request(**BESIDE))
    assert done.counts.obstacles == {obstacle(ObstacleKind.KEY_EXISTS): 1}
    edit_request = request(**BESIDE, replace=True)
    foreseen = bulk_edit_previews.preview(staff, edit_request)
    assert foreseen.samples[0].replaced.key == EntityKey("b", "bob")
    done = edit(staff, edit_request)
    assert (done.counts.replaced, done.counts.unchanged) == (foreseen.counts.replaced, 2) == (1, 2)
    assert content(mails)["b/bob"] == "bob 2021"
    undo.undo(done.activity, ADA)
    assert content(mails)["b/bob"] == "bob 2020"


def test_an_original_is_never_replaced_or_left_over(staff):
    swap = {"row_key": "replace(RowKey, '1', '2')"}
    edit_request = request(**swap, **REPAIR, copies="RowKey ge 'id_'")
    foreseen = bulk_edit_previews.preview(staff, edit_request)
    assert foreseen.counts.obstacles == {obstacle(ObstacleKind.ORIGINAL): 1}
    assert (foreseen.counts.unchanged, foreseen.counts.written) == (2, 0)
    assert edit(staff, edit_request).counts == foreseen.counts


def test_out_of_step_and_repaired_in_two_tables(staff):
    edit(staff, request(**BESIDE))
    mails, check = tables.get(staff.account, "mails"), request(**BESIDE, **REPAIR)
    assert bulk_edit_previews.preview(staff, check).is_in_step
    put(staff, "id_000001", "alan")  # its copy is left over, and the new one is missing
    put(staff, "id_000002", "bob", hired=EdmValue(Edm.STRING, "2020"))
    delete(staff, "id_000003")
    put(staff, "id_000004", "eve")
    out_of_step = bulk_edit_previews.preview(staff, check)
    counts = out_of_step.counts
    assert (counts.copied, counts.replaced, counts.left_over, out_of_step.is_in_step) == (2, 1, 2, False)
    assert [it.old_key.row_key for it in out_of_step.left_over] == ["ada", "cyd"]
    before = content(mails)
    done = edit(staff, check)
    assert done.counts == counts
    assert content(mails) == {"a/alan": "alan 2020", "b/bob": "bob 2020", "e/eve": "eve 2020"}
    assert bulk_edit_previews.preview(staff, check).is_in_step
    put(mails, "eve", "eve", partition_key="e", hired=EdmValue(Edm.INT32, 1))
    undo.undo(done.activity, ADA)
    assert content(mails) == {**before, "e/eve": "eve 1"}  # newer work stays


def test_left_over_copies_in_the_same_table_need_their_filter(staff):
    edit(staff, request(**WITHIN))
    put(staff, "other", "zoe")
    delete(staff, "id_000003")
    with pytest.raises(InvalidOperation, match="a filter that finds the copies"):
        bulk_edit_previews.preview(staff, request(**WITHIN, **REPAIR))
    check = request(**WITHIN, **REPAIR, copies=COPIES)
    assert bulk_edit_previews.preview(staff, check).counts.left_over == 1
    assert edit(staff, check).counts.left_over == 1
    assert sorted(it.removeprefix("sales/") for it in content(staff)) == [
        *("id_000001", "id_000002", "mail_ada", "mail_bob", "other"),
    ]


def test_chunks_know_the_keys_of_those_before_them(staff):
    """Collisions are found across chunks, also by a process that takes over, and with copies that the walk meets."""
    put(staff, "id_000004", "ada")
    expected = {obstacle(ObstacleKind.KEY_TWICE): 1}
    assert bulk_edit_previews.preview(staff, request(**WITHIN)).counts.obstacles == expected
    progress = last(steps(staff, request(**WITHIN, **REPAIR, copies=COPIES), size=1))
    assert (progress.counts.copied, progress.counts.obstacles) == (3, expected)
    # also without a filter: the copies are ahead of the walk
    delete(staff, "id_000004")
    for name in ("ada", "bob", "cyd"):
        delete(staff, f"mail_{name}")
    progress = last(steps(staff, request(**WITHIN, filter=""), size=1))
    assert (progress.counts.copied, progress.counts.seen, len(content(staff))) == (3, 3, 6)
    again = edit(staff, request(**WITHIN, filter=""))
    assert (again.counts.unchanged, again.counts.seen) == (6, 6)


def test_what_is_written_meanwhile_is_left_alone(staff):
    edit(staff, request(**BESIDE))
    mails = tables.get(staff.account, "mails")
    put(mails, "old", "old", partition_key="o")
    put(mails, "new", "new", partition_key="n")
    read_at = bulk_edit_previews.preview(staff, request(**BESIDE)).read_at
    put(mails, "new", "new", partition_key="n")
    put(staff, "id_000001", "ada", hired=EdmValue(Edm.INT32, 1))  # its copy is neither replaced nor left over
    done = edit(staff, request(**BESIDE, **REPAIR), read_at=read_at)
    assert done.counts.examples == [
        SkippedEntity(EntityKey("sales", "id_000001"), obstacle(ObstacleKind.CHANGED))
    ]
    assert (done.counts.left_over, "o/old" in content(mails), "n/new" in content(mails)) == (1, False, True)
    assert content(mails)["a/ada"] == "ada 2020"


def test_a_copy_that_another_client_inserts_first_is_an_obstacle(staff, monkeypatch):
    mails = tables.create(staff.account, "mails")
    sort = bulk_edits.second_copies.sort

    def sort_and_wait(*arguments):
        copies = sort(*arguments)
        put(mails, "ada", "theirs", partition_key="a")
        return copies

    monkeypatch.setattr(bulk_edits.second_copies, "sort", sort_and_wait)
    progress = bulk_edits.begin(staff, request(**BESIDE))
    with transaction.atomic():
        progress, skipped = bulk_edits.advance(staff, request(**BESIDE), progress, by=ADA)
    assert skipped == [SkippedEntity(EntityKey("sales", "id_000001"), obstacle(ObstacleKind.KEY_EXISTS))]
    assert (progress.counts.copied, content(mails)["a/ada"]) == (2, "theirs 2020")


def test_long_and_invalid_keys(staff):
    for expression, code in (("Email + '/'", "OutOfRangeInput"), (f"'{'x' * 1025}'", "KeyValueTooLarge")):
        obstacles = bulk_edit_previews.preview(staff, request(row_key=expression)).counts.obstacles
        assert obstacles == {Obstacle(ObstacleKind.INVALID_KEY, detail=code): 3}
    long = {"row_key": f"'{'字' * 600}' + Email", "table": "long"}
    assert edit(staff, request(**long)).counts.copied == 3
    assert edit(staff, request(**long)).counts.unchanged == 3


def test_protected_accounts_need_the_number(staff):
    account_settings.change(staff.account, by=ADA, protected=True)
    staff.account.refresh_from_db()
    with pytest.raises(BulkEditRefused):
        edit(staff, request(**WITHIN))
    assert edit(staff, request(**WITHIN), number=3).counts.copied == 3


def test_refusals(staff):
    remove = {"op": "remove", "property": "A"}
    for edit_request, index, member in (
        (request(table="STAFF"), 0, "row_key"),
        (request(row_key="'a'", table="a b"), 0, "table"),
        (request(row_key="'a'", copies="RowKey ge"), 0, "copies"),
        (BulkEditRequest("", (remove, {"op": "second-copy", "table": "$batch"})), 1, "table"),
    ):
        with pytest.raises(InvalidOperation) as raised:
            bulk_edits.begin(staff, edit_request)
        assert (raised.value.index, raised.value.member) == (index, member)


def test_a_job_resumes_in_each_of_its_parts(staff, monkeypatch):
    """A process that takes over computes the keys again, and each chunk has its effect once."""
    monkeypatch.setattr(bulk_edit_work, "CHUNK", 1)
    edit(staff, request(**BESIDE))
    mails = tables.get(staff.account, "mails")
    put(mails, "old", "old", partition_key="o")
    put(mails, "older", "older", partition_key="o")
    put(staff, "id_000004", "eve")
    job = bulk_edit_jobs.start(staff, request(**BESIDE, **REPAIR), by=ADA)
    step = bulk_edit_jobs.BULK_EDIT_JOB.step

    def step_and_forget(*arguments):
        bulk_edit_jobs._taken.clear()
        return step(*arguments)

    monkeypatch.setattr(
        type(bulk_edit_jobs.BULK_EDIT_JOB), "step", lambda _, *arguments: step_and_forget(*arguments)
    )
    job = job_runner.finish(job)
    assert (job.counts, job.done, job.total) == ({"copied": 1, "left_over": 2, "unchanged": 3}, 10, 10)
    assert sorted(content(mails)) == ["a/ada", "b/bob", "c/cyd", "e/eve"]


def test_progress_of_older_versions_is_read(staff):
    progress = bulk_edits.begin(staff, request(**WITHIN))
    dumped = json.loads(json.dumps(progress.dump()))
    for name in ("is_clearing", "cleared", "copied", "replaced", "left_over"):
        del dumped[name]
    assert Progress.load(dumped) == progress


def test_a_complete_preview_is_read_back_with_its_sample(staff):
    edit(staff, request(**BESIDE))
    put(staff, "id_000002", "bob", hired=EdmValue(Edm.INT32, 2021))
    delete(staff, "id_000003")
    put(staff, "id_000004", "eve")
    check = request(**BESIDE, **REPAIR)
    job = job_runner.finish(bulk_edit_jobs.start_preview(staff, check, by=ADA))
    shown = bulk_edit_jobs.preview_of(job, staff, check)
    assert replace(shown, read_at=0) == replace(bulk_edit_previews.preview(staff, check), read_at=0)
    assert shown.counts.left_over == 1


_KEYS = st.sampled_from(
    ["RowKey", "substring(RowKey, 0, 1)", "substring(RowKey, 1)", "string(Hired)", "Email"]
)


@settings(
    max_examples=of_usual(8),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.dictionaries(st.text("abz", min_size=1, max_size=2), st.text("ab", max_size=1), max_size=6),
    st.dictionaries(st.text("abz", min_size=1, max_size=2), st.text("ab", max_size=1), max_size=4),
    _KEYS,
    st.booleans(),
    st.booleans(),
)
def test_any_copies_are_foreseen_repaired_and_undone(other, mine, theirs, row_key, is_within, replaces):
    """A repair leads to copies in step from any content of the tables, and its undo restores that content."""
    for table in other:
        for key in content(table):
            delete(table, key.removeprefix("sales/"))
    source, target = other
    for table, rows in ((source, mine), (target, theirs)):
        for name, email in rows.items():
            put(table, name, email)
    table = {} if is_within else {"table": "other"}
    repair = request(
        row_key=f"'m' + {row_key}",  # the query finds no copies
        replace=replaces,
        delete_left_over=True,
        copies="RowKey ge 'm'",
        filter="RowKey lt 'm'",
    )
    repair.operations[0].update(table)
    before = content(source), content(target)
    foreseen = bulk_edit_previews.preview(source, repair)
    done = edit(source, repair)
    assert done.counts == foreseen.counts
    after = content(source)
    assert {key: after.get(key) for key in before[0] if key < "sales/m"} == {
        key: text for key, text in before[0].items() if key < "sales/m"
    }
    again = bulk_edit_previews.preview(source, repair)
    assert (again.counts.written, again.counts.obstacles) == (0, done.counts.obstacles)
    if done.activity is not None:
        undo.undo(done.activity, ADA)
    assert (content(source), content(target)) == before


@pytest.fixture
def other():
    account = accounts.add("other")
    return tables.create(account, "own"), tables.create(account, "other")
