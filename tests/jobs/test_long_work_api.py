"""Long work that a request does not wait for is answered by its job; the operations have tests of their own."""

import io

import pytest

from storage.account_files import account_import
from storage.accounts import accounts
from storage.domain.entities.changes import Insert
from storage.jobs import jobs
from storage.models import Account
from storage.runtime import job_runner
from storage.snapshots import snapshots
from storage.tables import tables
from tests.history.test_changes import actor, entity, write
from tests.undo.test_data_undo import content, upsert

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ask(call, table):
    """Ask for long work, let a server do it, and return its job."""
    asking = call("ada")

    def ask(method, path, body=None):
        answer = asking(method, f"accounts/{path}", body, Prefer="respond-async")
        assert answer.status_code == 202, answer.content
        assert answer.json()["status"] == "waiting"
        job_runner.run_all()
        return asking("GET", answer["Location"]).json()

    return ask


def test_entities_become_what_they_were(ask, table):
    write(table, actor(1, "other"), Insert(entity("a", 1)))
    snapshots.take(table.account, "before")
    write(table, actor(2, "script"), upsert("a", 2))

    for request in (
        ("acme/undo", {"actor": "script"}),
        ("acme/snapshots/before/restore", {}),
        ("acme/reset", {"snapshot": "before"}),
        ("acme/diff/apply", {"left": "acme@before", "right": "acme"}),
    ):
        write(table, actor(2, "script"), upsert("a", 2))
        job = ask("POST", *request)
        assert (job["status"], job["counts"]["changed"], job["error"]) == ("done", 1, ""), request
        assert job["result"]["tables"][0]["table"] == "people"
        assert content(table) == {"a": 1}


def test_accounts_are_made_exported_and_deleted(ask, call, table):
    write(table, actor(1, "other"), Insert(entity("a", 1)))
    for path, kind in (("branches", "branch.create"), ("copy", "account.copy")):
        job = ask("POST", f"acme/{path}", {"name": path})
        assert (job["kind"], job["status"], job["account"], job["done"]) == (kind, "done", path, 1)
        made = accounts.by_name(path)
        assert made.enabled and content(tables.get(made, "people")) == {"a": 1}
        again = call("ada")("POST", f"accounts/acme/{path}", {"name": path}, Prefer="respond-async")
        assert (again.status_code, again.json()["account"]["name"]) == (200, path)

    job = ask("POST", "copy/export")
    [file] = job["files"]
    answer = call("max", "manage")("GET", f"jobs/{job['id']}/files/{file['id']}")
    assert answer.status_code == 404  # max is no member
    answer = call("ada")("GET", f"jobs/{job['id']}/files/{file['id']}")
    result = account_import.check(io.BytesIO(b"".join(answer.streaming_content)), "there")
    assert (result.tables, result.entities) == (1, 1)

    job = ask("DELETE", "copy?with_tables=true")
    assert (job["kind"], job["status"], job["account"]) == ("account.delete", "done", "")
    assert not Account.objects.filter(name="copy").exists()


def test_an_owner_sees_how_the_deletion_ends(call, table):
    ask = call("alice")
    job = ask("DELETE", "accounts/acme?with_tables=true", Prefer="respond-async").json()
    job_runner.run_all()
    assert ask("GET", f"jobs/{job['id']}").json()["status"] == "done"
    assert [it["id"] for it in ask("GET", "jobs").json()["items"]] == [job["id"]]
    assert call("max")("GET", f"jobs/{job['id']}").status_code == 404


def test_a_deletion_that_is_refused_is_refused_at_once(call, table):
    answer = call("alice")("DELETE", "accounts/acme", Prefer="respond-async")
    assert (answer.status_code, answer.json()["detail"][:22]) == (409, "The account has tables")


def test_readers_do_not_download_the_settings_of_an_account(call, table):
    job = call("max")("POST", "accounts/acme/export").json()
    job_runner.run_all()
    path = f"jobs/{job['id']}/files/{jobs.get(job['id']).files.get().pk}"
    assert call("victor")("GET", f"jobs/{job['id']}").status_code == 200
    assert [call(name)("GET", path).status_code for name in ("victor", "eve", "max")] == [403, 403, 200]
