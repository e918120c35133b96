"""Selected rows go at once, all or none, and come back with Undo; a protected account asks first."""

from dataclasses import replace

import pytest

from console.grid.tokens import encode_key
from storage.domain.access.actor import SERVER
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.service.activity import Verb
from storage.models import Activity, Snapshot
from storage.operations.accounts import account_settings
from storage.operations.entities import edits, entities
from storage.operations.tables import tables
from tests.console.forms import fields_of

DELETE = "/ui/a/acme/t/people/delete/"
HTMX = {"HX-Request": "true"}
KEYS = [EntityKey("se", "ada"), EntityKey("", ""), EntityKey("nl", "<b>")]


@pytest.fixture
def three(people):
    for key in KEYS:
        people(*key, Name="x")
    people("se", "other")


def there(account):
    table = tables.get(account, "people")
    return [key for key in KEYS if entities.get(table, key) is not None]


def chosen(*keys, **more):
    return {"scope": "rows", "key": [encode_key(key) for key in keys or KEYS], **more}


def said(client, answer):
    return client.get(answer["Location"]).content.decode()


def test_deletes_what_is_ticked_and_undoes_it(visit, three, account):
    client = visit("eve")
    answer = client.post(DELETE, chosen())
    assert there(account) == []
    text = said(client, answer)
    assert "Deleted 3 entities" in text and "data-undo" in text
    done = Activity.objects.get(verb=Verb.ENTITY_DELETE)
    client.post(f"/ui/undo/{done.pk}/", {"next": "/ui/"})
    assert there(account) == KEYS


def test_what_is_gone_already_is_no_error(visit, three, account):
    client = visit("eve")
    client.post(DELETE, chosen(KEYS[0]))
    assert "Deleted 2 entities" in said(client, client.post(DELETE, chosen()))
    assert "already deleted" in said(client, client.post(DELETE, chosen()))


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"scope": "query", "f": "Name eq"}, "Select the entities to delete"),
        ({"scope": "table"}, "Select the entities to delete"),
        ({"scope": "rows"}, "Select at least one row"),
    ],
)
def test_refuses_a_table_and_nothing(visit, three, account, sent, why):
    client = visit("eve")
    answer = client.post(DELETE, {**sent, "next": "/ui/a/acme/t/people/?f=x"})
    assert answer["Location"] == "/ui/a/acme/t/people/?f=x"
    assert why in said(client, answer)
    assert there(account) == KEYS
    assert (
        client.post(DELETE, {**sent, "next": "https://evil.example/"})["Location"] == "/ui/a/acme/t/people/"
    )


def test_a_protected_account_asks_by_its_name(visit, three, account):
    account_settings.change(account, protected=True)
    client = visit("eve")
    answer = client.post(DELETE, chosen())
    text = answer.content.decode()
    assert (
        answer.status_code == 200
        and "<b>acme</b> is protected" in text
        and "Delete 3 entities from acme" in text
    )
    assert "&lt;b&gt;" in text
    assert there(account) == KEYS
    client.post(DELETE, chosen(confirmed="1"))
    assert there(account) == []


def test_a_read_only_account_keeps_them(visit, three, account):
    account_settings.change(account, read_only=True)
    client = visit("eve")
    assert "not allowed" in said(client, client.post(DELETE, chosen()))
    assert there(account) == KEYS


@pytest.fixture
def small_steps(monkeypatch):
    monkeypatch.setattr("console.entities.query_deletion._STEP", 1)
    read = entities.page
    monkeypatch.setattr(entities, "page", lambda table, wanted: read(table, replace(wanted, top=1)))


def run(client, answer):
    """Go on as the page does, until the deletion is done; the answers."""
    answers = [answer]
    while b"data-goes-on" in answer.content:
        answer = client.post(DELETE, fields_of(answer, "deletion"), headers=HTMX)
        answers.append(answer)
    return answers


def test_deletes_all_matches_in_steps_with_one_undo(visit, three, account, small_steps):
    client = visit("eve")
    answers = run(client, client.post(DELETE, {"scope": "query", "f": "Name eq 'x'"}, headers=HTMX))
    assert "Deleted 2 of 3 entities" in " ".join(answers[1].content.decode().split())
    assert b"data-deleted" in answers[-1].content and b"Deleted 3 entities" in answers[-1].content
    assert there(account) == []
    assert entities.get(tables.get(account, "people"), EntityKey("se", "other")) is not None
    done = Activity.objects.filter(verb=Verb.ENTITY_DELETE)
    assert done.count() == 3
    client.post(f"/ui/undo/{','.join(str(one.pk) for one in done)}/", {"next": "/ui/"})
    assert there(account) == KEYS
    [snapshot] = Snapshot.objects.all()
    assert (snapshot.name, snapshot.reason, snapshot.is_whole) == (
        "before-deletion-people",
        "deletion",
        False,
    )


def test_stops_a_deletion_and_undoes_what_was_done(visit, three, account, small_steps):
    client = visit("eve")
    answer = client.post(DELETE, {"scope": "query", "f": ""}, headers=HTMX)
    stopped = client.post(DELETE, {**fields_of(answer, "deletion"), "action": "stop"}, headers=HTMX)
    assert b"Deleted 1 entity" in stopped.content and b"data-undo" in stopped.content
    assert len(there(account)) == 2


def test_asks_before_all_matches_of_a_protected_account(visit, three, account):
    account_settings.change(account, protected=True)
    client = visit("eve")
    answer = client.post(DELETE, {"scope": "query", "f": "Name eq 'x'"}, headers=HTMX)
    assert "Delete 3 entities from acme" in answer.content.decode() and there(account) == KEYS
    run(client, client.post(DELETE, fields_of(answer, "deletion"), headers=HTMX))
    assert there(account) == []


def test_spares_what_changed_after_it_was_read(visit, three, account, monkeypatch):
    table = tables.get(account, "people")
    kept = entities.get(table, KEYS[0])
    old = StoredEntity(encode_entity_key(kept.key), b"%d" % (kept.timestamp - 1), kept.content)
    assert edits.delete_unchanged(table, [old], by=SERVER) is None
    assert there(account) == KEYS
