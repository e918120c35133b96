"""Selected rows go at once, all or none, and come back with Undo; a protected account asks first."""

import pytest

from console.grid.tokens import encode_key
from storage.accounts import account_settings
from storage.core import registry
from storage.domain.entities.entity import EntityKey
from storage.entities import entities
from storage.entities.subject import EntityVerb
from storage.models import Activity
from storage.tables import tables

DELETE = "/ui/a/acme/t/people/delete/"
KEYS = [EntityKey("se", "ada"), EntityKey("", ""), EntityKey("nl", "<b>")]


@pytest.fixture
def three(add_entity):
    for key in KEYS:
        add_entity(*key, Name="x")
    add_entity("se", "other")


def there(account):
    table = tables.get(account, "people")
    return [key for key in KEYS if entities.get(table, key) is not None]


def chosen(*keys, **more):
    return {"scope": "rows", "key": [encode_key(key) for key in keys or KEYS], **more}


def said(client, answer):
    return client.get(answer["Location"]).content.decode()


def test_deletes_selected_rows_with_undo(visit, three, account):
    client = visit("eve")
    answer = client.post(DELETE, chosen())
    assert there(account) == []
    text = said(client, answer)
    assert "Deleted 3 entities. You can undo this for 7 days." in text and "data-undo" in text
    done = Activity.objects.get(verb=EntityVerb.DELETE)
    client.post(f"/ui/undo/{done.pk}/", {"next": "/ui/"})
    assert there(account) == KEYS


def test_deleting_deleted_entities_is_not_an_error(visit, three, account):
    client = visit("eve")
    client.post(DELETE, chosen(KEYS[0]))
    assert "Deleted 2 entities" in said(client, client.post(DELETE, chosen()))
    assert "already deleted" in said(client, client.post(DELETE, chosen()))


def test_refuses_a_table_and_nothing(visit, three, account):
    for sent, why in (
        ({"scope": "query", "f": "Name eq"}, "Select the entities to delete"),
        ({"scope": "table"}, "Select the entities to delete"),
        ({"scope": "rows"}, "Select at least one row"),
    ):
        client = visit("eve")
        answer = client.post(DELETE, {**sent, "next": "/ui/a/acme/t/people/?f=x"})
        assert answer["Location"] == "/ui/a/acme/t/people/?f=x"
        assert why in said(client, answer)
        assert there(account) == KEYS
        assert (
            client.post(DELETE, {**sent, "next": "https://evil.example/"})["Location"]
            == "/ui/a/acme/t/people/"
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


def test_deleting_a_whole_query_is_a_bulk_edit(visit, three, account):
    answer = visit("eve").post(DELETE, {"scope": "query", "f": "Name eq 'x'"})
    assert answer["Location"] == "/ui/a/acme/t/people/bulk/?f=Name+eq+%27x%27&0-op=delete"
    assert there(account) == KEYS


def test_without_bulk_edits_only_rows_can_be_deleted(visit, three, account):
    client = visit("eve")
    marked = "data-delete\n      data-rows-only"
    assert marked not in client.get("/ui/a/acme/t/people/").content.decode()
    registry.leave_out({"bulk_edit"})
    try:
        page = client.get("/ui/a/acme/t/people/").content.decode()
        answer = client.post(DELETE, {"scope": "query", "f": "Name eq 'x'"})
        text = said(client, answer)
    finally:
        registry.leave_out(())
    assert marked in page
    assert "Select the entities to delete" in text
    assert there(account) == KEYS
