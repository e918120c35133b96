"""Tables that get another name or are copied: by operations, on the page of settings and in the management API."""

import pytest
from django.utils.html import strip_tags

from console.models import SavedQuery, User
from storage.access import policies
from storage.accounts import account_settings
from storage.activity.undoing import CannotUndo, Reason
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.changes import Insert
from storage.domain.errors import InvalidResourceName, OutOfRangeInput, ResourceNotFound, TableAlreadyExists
from storage.domain.filters.query import EntityQuery
from storage.entities import entities
from storage.jobs import running
from storage.models import Activity, Job
from storage.tables import renaming, table_copies, tables
from storage.undo import undo
from tests.history.test_changes import actor, entity, write

pytestmark = pytest.mark.django_db(transaction=True)
MAX = Actor(ActorKind.USER, "max")
READER = SignedIdentifier("reader", AccessPolicy("2026-01-01T00:00:00.0000000Z", None, "r"))
SETTINGS = "/ui/a/acme/t/people/settings/"


@pytest.fixture
def people(account, table):
    write(table, actor(2, "script"), Insert(entity("a", 1)), Insert(entity("b" * 2000, 2)))
    policies.replace(table, [READER])
    return table


def content(table):
    return [(it.key, it.timestamp, it.content) for it in entities.page(table, EntityQuery()).entities]


def copy(table, name):
    return tables.get(table.account, running.complete(table_copies.request(table, name), by=MAX).table_name)


def test_a_renamed_table_keeps_everything_but_its_name(people, account):
    before = content(people)
    done = renaming.rename(people, "Visitors", by=MAX)
    with pytest.raises(ResourceNotFound):
        tables.get(account, "people")
    renamed = tables.get(account, "visitors")
    assert (renamed.pk, renamed.name, people.name) == (people.pk, "Visitors", "Visitors")
    assert content(renamed) == before
    assert policies.stored_by_name(account, "visitors") == [READER]
    undone = undo.undo(done, MAX)
    assert tables.get(account, "people").pk == people.pk
    undo.undo(undone, MAX)
    assert tables.get(account, "Visitors").name == "Visitors"
    renaming.rename(renamed, "VISITORS", by=MAX)  # letter case only
    assert tables.get(account, "visitors").name == "VISITORS"


def test_a_name_must_be_valid_and_free(people, account):
    tables.create(account, "taken")
    for name, error in (
        ("Taken", TableAlreadyExists),
        ("1abc", InvalidResourceName),
        ("", OutOfRangeInput),
    ):
        with pytest.raises(error):
            renaming.rename(people, name, by=MAX)
        with pytest.raises(error):
            table_copies.request(people, name)
    done = renaming.rename(people, "visitors", by=MAX)
    tables.create(account, "people")
    with pytest.raises(CannotUndo) as refused:
        undo.undo(done, MAX)
    assert refused.value.reason is Reason.NAME_TAKEN


def test_a_copy_has_entities_with_their_timestamps_and_policies(people, account):
    tables.change(people, by=MAX, description="Visitors", tags=["x"])
    copied = copy(people, "People2")
    assert content(copied) == content(people) and len(content(copied)) == 2
    assert (copied.name, copied.description, copied.tags) == ("People2", "Visitors", ["x"])
    assert policies.stored_by_name(account, "people2") == [READER]
    job, done = Job.objects.get(), Activity.objects.get(verb="table.copy")
    assert (job.kind, job.counts, job.activity_id) == ("table.copy", {"inserted": 2}, done.pk)
    undone = undo.undo(done, MAX)
    assert tables.find(account, "people2") is None and len(content(people)) == 2
    undo.undo(undone, MAX)
    write(copied, actor(2, "script"), Insert(entity("c", 3)))
    again = copy(people, "People3")
    write(again, actor(2, "script"), Insert(entity("c", 3)))
    with pytest.raises(CannotUndo) as refused:
        undo.undo(Activity.objects.filter(verb="table.copy").latest("pk"), MAX)
    assert refused.value.reason is Reason.CHANGED_SINCE


def test_the_settings_of_a_table_rename_and_copy_it(visit, people, account):
    owner = User.objects.get(username="max")
    query = SavedQuery.objects.create(
        account=account, table_name="people", slug="adults", name="Adults", content={}, owner=owner
    )
    client = visit("max")
    assert "SAS tokens and clients that use people stop working" in " ".join(
        client.get(SETTINGS).content.decode().split()
    )
    answer = client.post(f"{SETTINGS}copy/", {"name": "people2"})
    assert answer["Location"] == "/ui/a/acme/t/people2/"
    assert "Copied people to people2." in client.get(answer["Location"]).content.decode()
    answer = client.post(f"{SETTINGS}rename/", {"name": "people2"})
    assert "already exists" in client.get(answer["Location"]).content.decode()
    answer = client.post(f"{SETTINGS}rename/", {"name": "visitors"})
    assert answer["Location"] == "/ui/a/acme/t/visitors/settings/"
    assert "Renamed people to visitors." in client.get(answer["Location"]).content.decode()
    moved = client.get("/ui/a/acme/t/People/schema/", {"x": "1"})
    assert moved["Location"] == "/ui/a/acme/t/visitors/schema/?x=1"
    for headers in ({}, {"HX-Request": "true"}, {"HX-Request": "true", "HX-Request-Type": "partial"}):
        saved = client.post("/ui/a/acme/t/people/settings/notes/", {"description": "x"}, headers=headers)
        assert (saved.status_code, saved["Location"]) == (307, "/ui/a/acme/t/visitors/settings/notes/")
    part = client.get("/ui/a/acme/t/people/?f=", headers={"HX-Request": "true", "HX-Request-Type": "partial"})
    assert (part.status_code, part["Location"]) == (307, "/ui/a/acme/t/visitors/?f=")
    # Django redirects to no address of over 16,384 characters
    assert client.get("/ui/a/acme/t/people/schema/", {"x": "1" * 16_384}).status_code == 400
    assert visit("sam").get("/ui/a/acme/t/people/").status_code == 404
    assert "/t/visitors/settings/#rename" in client.get("/ui/a/acme/t/visitors/").content.decode()
    query.refresh_from_db()
    assert (query.table_name, query.slug) == ("visitors", "adults")
    log = " ".join(strip_tags(client.get("/ui/a/acme/activity/").content.decode()).split())
    assert "renamed the table people to visitors" in log and "copied the table people to people2" in log
    client.post("/ui/a/acme/tables/new/", {"name": "people"})
    assert client.get("/ui/a/acme/t/people/schema/").status_code == 200
    assert visit("eve").post("/ui/a/acme/t/visitors/settings/rename/", {"name": "x"}).status_code == 403
    assert "Rename or copy" not in visit("eve").get("/ui/a/acme/t/visitors/settings/").content.decode()


def test_scripts_rename_and_copy(call, people, account):
    ask, path = call("max"), "accounts/acme/tables/people"
    assert ask("POST", f"{path}/copy", {"name": "people2"}).json()["name"] == "people2"
    assert ask("POST", f"{path}/copy", {"name": "people2"}).status_code == 409
    assert ask("POST", f"{path}/rename", {"name": "people2"}).status_code == 409
    assert ask("POST", f"{path}/rename", {"name": "a"}).status_code == 400
    assert ask("POST", f"{path}/rename", {"name": "visitors"}).json()["url"].endswith("/acme/visitors")
    assert ask("GET", path).status_code == 404
    account_settings.change(account, read_only=True)
    assert ask("POST", "accounts/acme/tables/visitors/rename", {"name": "people"}).status_code == 403
