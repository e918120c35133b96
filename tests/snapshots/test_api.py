"""Snapshots and branches by scripts."""

import psycopg
import pytest
from django.conf import settings

from console.models import User
from storage.accounts import account_settings, accounts
from storage.accounts.accounts import NewAccount
from storage.branches import branches
from storage.branches.branches import BranchRequest
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Role
from storage.domain.entities.changes import Delete, Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.jobs import jobs, running
from storage.models import Activity, Branch, Job, Membership, Snapshot
from storage.people import members
from storage.relations import history
from storage.snapshots import snapshots
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql.relations import relation_name
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)
SNAPSHOTS = "accounts/acme/snapshots"


def write(table, *changes):
    recorder = history.recorder(table.account, SERVER)
    for change in changes:
        sql.run(statements.change(relation_name(table.pk), change, recorder))


@pytest.fixture
def direct(account):
    """Open a session of another process."""
    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as connection:
        yield connection


@pytest.fixture
def people(account):
    table = tables.create(account, "people")
    mail = {"Email": EdmValue(Edm.STRING, "ada@shop.test")}
    write(table, *(Insert(Entity(EntityKey("se", name), mail)) for name in ("ada", "bob")))
    return table


def test_snapshots_are_taken_changed_and_restored(call, people):
    ask = call("max")
    taken = ask("POST", SNAPSHOTS, {"name": "ci-baseline", "ttl": "2d"})
    assert taken.status_code == 201, taken.content
    assert (taken.json()["reason"], taken.json()["taken_by"]) == ("user", "max")
    assert [it["name"] for it in taken.json()["tables"]] == ["people"]
    assert ask("GET", f"{SNAPSHOTS}/ci-baseline").json() == taken.json()
    assert ask("POST", SNAPSHOTS, {"name": "ci-baseline"}).status_code == 409
    assert (
        ask("PATCH", f"{SNAPSHOTS}/ci-baseline", {"name": "base", "keep": True}).json()["expires_at"] is None
    )

    write(people, Delete(EntityKey("se", "ada"), ANY))
    path = f"{SNAPSHOTS}/base/restore"
    planned = ask("POST", path, {"dry_run": True}).json()
    row = {
        "name": "people",
        "action": "keep",
        "inserts": 1,
        "changes": 0,
        "deletions": 0,
        "skipped": 0,
        "policies": False,
    }
    assert (planned["dry_run"], planned["entities"], planned["tables"]) == (True, 1, [row])
    keys = [{"partition_key": "se", "row_key": "bob"}]
    assert ask("POST", path, {"tables": ["people"], "entities": keys}).json()["entities"] == 0
    done = ask("POST", path, {}).json()
    assert (done["dry_run"], done["tables"], done["before"]) == (False, [row], "before-restore-base-2")
    assert Activity.objects.filter(verb="snapshot.restore").latest("pk").actor == "max"
    names = [it["name"] for it in ask("GET", SNAPSHOTS).json()["items"]]
    assert names == ["before-restore-base-2", "before-restore-base", "base"]
    assert ask("DELETE", f"{SNAPSHOTS}/base").status_code == 204
    assert ask("POST", path, {}).status_code == 404


def test_policies_and_branches_require_more(call, people, account):
    snapshots.take(account, "base")
    for name, scope, method, path, body, status in (
        ("max", "write", "POST", f"{SNAPSHOTS}/base/restore", {}, 200),
        ("max", "write", "POST", f"{SNAPSHOTS}/base/restore", {"policies": True}, 403),
        ("max", "manage", "POST", "accounts/acme/reset", {"snapshot": "base"}, 200),
        ("max", "manage", "POST", "accounts/acme/reset", {}, 409),
        ("max", "manage", "POST", "accounts/acme/branches", {"name": "mine"}, 403),
        ("alice", "write", "POST", "accounts/acme/branches", {"name": "mine"}, 403),
        ("alice", "manage", "POST", "accounts/acme/branches", {"name": "mine"}, 201),
    ):
        assert call(name, scope)(method, path, body).status_code == status, (name, scope, path, body)
    account_settings.change(account, read_only=True)
    assert call("max")("POST", f"{SNAPSHOTS}/base/restore", {}).status_code == 403


def test_owners_make_branches_up_to_a_quota(call, people, account, settings):
    settings.QUOTAS = settings.QUOTAS | {"branch": 1}
    path, body = "accounts/acme/branches", {"name": "first"}
    limited = call("alice", account=account)("POST", path, body)
    assert limited.status_code == 403 and "not limited to one account" in limited.json()["detail"]
    alice = call("alice")
    assert alice("POST", path, body).status_code == 201
    assert alice("POST", path, body).status_code == 200  # not counted again
    branch = Branch.objects.get().account
    assert members.role_in(User.objects.get(username="alice"), branch) is Role.OWNER
    refused = alice("POST", path, {"name": "second"})
    assert refused.status_code == 409 and "acme has 1 branches already" in refused.json()["detail"]
    assert call("ada")("POST", path, {"name": "second"}).status_code == 201
    Membership.objects.filter(account=branch, user__username="alice").delete()
    assert alice("POST", path, body).status_code == 404  # the answer would have its keys


def test_refusals_name_the_field(call, people):
    ask = call("ada")
    for path, body, pointer in (
        (SNAPSHOTS, {"name": "no spaces"}, "#/name"),
        (SNAPSHOTS, {"name": "one", "tables": []}, "#/tables"),
        ("accounts/acme/branches", {"name": "branch", "tables": {"people": "nonsense ("}}, "#/tables"),
        ("accounts/acme/branches", {"name": "branch", "masking": {"people": {"Email": "no"}}}, "#/masking"),
        (
            "accounts/acme/branches",
            {"name": "branch", "masking": {"people": {"RowKey": "blank"}}},
            "#/masking",
        ),
    ):
        refused = ask("POST", path, body)
        assert refused.status_code == 400, (path, body)
        assert refused.json()["errors"][0]["pointer"].startswith(pointer)
    assert ask("POST", "accounts/acme/branches", {"name": "branch", "snapshot": "none"}).status_code == 404
    assert (
        ask("POST", "accounts/acme/branches", {"name": "branch", "tables": {"nowhere": None}}).status_code
        == 409
    )


def test_a_branch_is_made_once_and_reset(call, people, account):
    ask = call("ada")
    snapshots.take(account, "base")
    body = {"name": "branch", "snapshot": "base", "ttl": "8h", "labels": {"pr": "482"}}
    made = ask("POST", "accounts/acme/branches", body)
    assert made.status_code == 201, made.content
    result = made.json()
    assert (result["entities"], result["branch"]["snapshot"], result["originals"]) == (2, "base", [])
    assert "AccountKey=" in result["account"]["connection_string"]
    assert result["account"]["labels"] == {"pr": "482"}
    assert ask("POST", "accounts/acme/branches", body).status_code == 200
    assert ask("POST", "accounts/acme/branches", {"name": "branch"}).status_code == 409
    assert [it["name"] for it in ask("GET", "accounts/acme/branches").json()["items"]] == ["branch"]

    write(tables.get(Branch.objects.get().account, "people"), Delete(EntityKey("se", "ada"), ANY))
    assert ask("POST", "accounts/branch/reset", {}).json()["entities"] == 1
    assert ask("POST", "accounts/branch/reset", {}).json()["entities"] == 0
    assert ask("GET", "accounts/branch/snapshots").json()["items"] == []
    assert ask("DELETE", "accounts/branch?with_tables=true").status_code == 204
    assert not Snapshot.objects.filter(reason="branch").exists()


def test_a_leaky_branch_stays_frozen(call, people):
    ask = call("ada")
    write(people, Insert(Entity(EntityKey("se", "cem"), {"Note": EdmValue(Edm.STRING, "ask ada@shop.test")})))
    body = {"name": "leaky", "masking": {"people": {"Email": "email"}}}
    made = ask("POST", "accounts/acme/branches", body).json()
    assert made["originals"] == [{"table": "people", "property": "Note", "entities": 1}]
    assert made["account"]["state"] == "frozen"
    again = ask("POST", "accounts/acme/branches", body)
    assert (again.status_code, again.json()["originals"]) == (200, made["originals"])


def test_a_branch_whose_maker_died_is_made_again(call, people, direct):
    ask, body = call("ada"), {"name": "branch", "labels": {"pr": "482"}}
    request = branches.request(people.account, BranchRequest("branch"))
    # as its maker begins: frozen, without tables
    job = jobs.start_requested(request, by=SERVER)
    half = accounts.add("branch", NewAccount(enabled=False))
    Job.objects.filter(pk=job.pk).update(account=half, state={"account": half.pk})
    direct.execute("SELECT pg_advisory_lock(%s, %s)", [running._LOCKS, job.pk])
    waiting = ask("POST", "accounts/acme/branches", body)
    assert (waiting.status_code, waiting["Retry-After"]) == (409, "5")
    assert ask("POST", "accounts/branch/thaw", {}).status_code == 409
    # as when its session ends, which takes PostgreSQL a moment
    direct.execute("SELECT pg_advisory_unlock_all()")
    made = ask("POST", "accounts/acme/branches", body)
    assert (made.status_code, made.json()["entities"]) == (201, 2)
    assert made.json()["account"]["state"] == "active"
    assert not Job.objects.filter(ended_at=None).exists()


def test_an_incomplete_branch_of_an_older_version_is_no_success(call, people):
    ask, body = call("ada"), {"name": "branch"}
    assert ask("POST", "accounts/acme/branches", body).status_code == 201
    Branch.objects.update(origin=None)
    account_settings.change(accounts.by_name("branch"), enabled=False)
    refused = ask("POST", "accounts/acme/branches", body)
    assert refused.status_code == 409
    assert "incomplete" in refused.json()["detail"]


def test_the_schedule(call, people):
    ask, path = call("max"), "accounts/acme/snapshot-schedule"
    assert ask("GET", path).json() == {"schedule": None}
    schedule = {"hour": 3, "weekday": 0, "keep": 4}
    assert ask("PUT", path, schedule).json() == {"schedule": schedule}
    assert ask("PUT", path, {"hour": 24}).status_code == 400
    assert ask("DELETE", path).status_code == 204
    assert ask("GET", path).json() == {"schedule": None}
