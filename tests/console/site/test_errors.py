"""Error pages."""

from unittest.mock import Mock

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.test import Client

from console.home.views import home
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.errors import InsufficientAccountPermissions, ServerBusy, TableNotFound
from storage.people import members
from storage.tables import tables


def test_errors_of_views_get_their_page(visit, monkeypatch, caplog):
    client = visit("alice")
    client.raise_request_exception = False
    for error, status, text in [
        (PermissionDenied("This requires the Owner role."), 403, "This requires the Owner role."),
        (PermissionDenied(), 403, "Your role does not allow this."),
        (ZeroDivisionError("secret"), 500, "Something went wrong"),
        (OperationalError("secret"), 503, "The database is unavailable"),
        (ServerBusy(), 503, "The database is unavailable"),
        (TableNotFound(), 404, "Page not found"),
        (InsufficientAccountPermissions(), 403, "Write operations are not allowed."),
        (SuspiciousOperation("secret"), 400, "Bad request"),
        (RequestDataTooBig("secret"), 413, "The limit for a form is 8.0"),
    ]:
        caplog.clear()
        monkeypatch.setattr(home, "visible_accounts", Mock(side_effect=error))
        answer = client.get("/ui/")
        page = answer.content.decode()
        assert answer.status_code == status, (error, status)
        assert text in page, (error, status)
        assert "secret" not in page, (error, status)
        assert "default-src 'none'" in answer["Content-Security-Policy"], (error, status)
        if status == 500:
            number = answer["X-Request-Id"]
            assert f"<code>{number}</code>" in page, (error, status)
            [logged] = caplog.records  # one line with everything: Django adds none
            assert logged.getMessage().endswith(f"failed: request {number}"), (error, status)
            assert (logged.request_id, logged.user, logged.operation) == (number, "alice", "home:index")
            assert logged.exc_info[1] is error, (error, status)


def test_without_its_database_a_page_says_so(visit, monkeypatch):
    def away(*_):
        raise OperationalError

    client = visit("alice")
    client.raise_request_exception = False
    monkeypatch.setattr(SessionStore, "load", away)
    answer = client.get("/ui/me/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert b'<meta http-equiv="refresh" content="5">' in answer.content


def test_refusals_name_the_required_role(visit):
    victor = visit("victor")
    page = victor.get("/ui/a/acme/members/add/").content.decode()
    assert "Owner" not in page  # it is a form that is posted
    page = victor.post("/ui/a/acme/members/add/").content.decode()
    assert "This requires the Owner role." in page
    assert "<bdi>alice</bdi>" in page
    assert "<bdi>max</bdi>" not in page
    assert "<bdi>ada</bdi>" in victor.get("/ui/u/").content.decode()


def test_an_error_keeps_the_frame_of_those_who_are_signed_in(client, visit):
    for user, address, status, link in (
        ("victor", "/ui/nothing/", 404, "/ui/notices/"),
        ("victor", "/ui/a/acme/keys/", 403, "/ui/a/acme/overview/"),
        ("sam", "/ui/a/acme/", 404, "/ui/notices/"),
    ):
        answer = visit(user).get(address)
        page = answer.content.decode()
        assert answer.status_code == status
        assert 'id="sidebar"' in page and f'href="{link}"' in page, address
    assert 'id="sidebar"' not in client.get("/ui/nothing/").content.decode()


def test_an_address_of_a_form_leads_to_its_page(visit, add_entity):
    client = visit("ada")
    for address, parent in [
        ("/ui/u/invite/", "/ui/u/"),
        ("/ui/a/acme/snapshots/schedule/", "/ui/a/acme/snapshots/"),
        ("/ui/a/acme/t/people/delete/", "/ui/a/acme/t/people/"),
        ("/ui/appearance/", "/ui/"),
    ]:
        answer = client.get(address)
        assert (answer.status_code, answer["Allow"]) == (405, "POST"), (address, parent)
        assert f'<meta http-equiv="refresh" content="0; url={parent}">' in answer.content.decode(), address
        part = client.get(address, headers=SCRIPT)
        assert (part.status_code, part.content) == (405, b""), (address, parent)


def test_a_former_member_is_told_so(visit, cast, account):
    assert b"You no longer" not in visit("sam").get("/ui/a/acme/").content
    members.remove(account, cast["victor"], by=Actor(ActorKind.USER, "alice"))
    answer = visit("victor").get("/ui/a/acme/", headers=SCRIPT)
    assert answer.status_code == 404
    assert "You no longer have access to acme." in answer.content.decode()


def test_a_form_of_another_site(cast):
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast["alice"])
    answer = client.post("/ui/me/", {"theme": "dark"})
    assert answer.status_code == 403
    assert b"Your session has expired" in answer.content


SCRIPT = {"X-Requested-With": "fetch"}


def test_a_script_gets_a_message_and_keeps_its_page(visit, add_entity):
    answer = visit("victor").post("/ui/a/acme/members/add/", headers=SCRIPT)
    assert (answer.status_code, answer["X-Tablero-Problem"]) == (403, "403")
    text = answer.content.decode()
    assert "<html" not in text
    assert "This requires the Owner role." in text
    assert "What you typed is still on this page." in text
    answer = visit("alice").get("/ui/a/acme/t/nowhere/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["X-Tablero-Problem"]) == (404, "404")
    assert "What you typed" not in answer.content.decode()


def test_a_deleted_table_says_who_deleted_it_and_is_restored_in_place(visit, account, add_entity):
    add_entity("se", "1", Name="Ada")
    tables.delete(account, "people", by=Actor(ActorKind.KEY, "key1"), keep=tables.DELETED_TABLE_RETENTION)
    max_, page = visit("max"), "/ui/a/acme/t/people/?f=Age+gt+1"
    gone = max_.get(page)
    text = gone.content.decode()
    assert gone.status_code == 404 and "<bdi>key1</bdi> deleted the table <bdi>people</bdi> at" in text
    assert "Page not found" not in text and 'id="sidebar"' in text and "/ui/a/acme/activity/" in text
    assert f'<input type="hidden" name="next" value="{page}">' in text and "Restore people" in text
    assert "Restore people" not in visit("eve").get(page).content.decode()  # eve may not restore it
    assert b"key1" not in visit("sam").get("/ui/a/acme/t/people/").content  # sam may not see it

    part = max_.get("/ui/a/acme/t/people/cell/?key=x&property=Age", headers=SCRIPT)
    assert (part.status_code, part["X-Tablero-Problem"]) == (404, "404")
    assert "<html" not in part.content.decode() and "Restore people" in part.content.decode()
    assert 'name="next" value="/ui/a/acme/t/people/"' in part.content.decode()

    table = tables.deleted(account)[0]
    answer = max_.post("/ui/a/acme/tables/restore/", {"table": table.pk, "next": page})
    assert answer["Location"] == page and max_.get(page).status_code == 200


def test_a_table_that_is_gone_for_good_still_says_who_deleted_it(visit, account, add_entity):
    tables.delete(account, "people", by=Actor(ActorKind.USER, "eve"))
    tables.drop_expired_tables()
    max_ = visit("max")
    text = max_.get("/ui/a/acme/t/people/").content.decode()
    assert "<bdi>eve</bdi> deleted the table" in text and "cannot be restored" in text
    assert "Page not found" in max_.get("/ui/a/acme/t/never/").content.decode()


def test_a_script_is_told_of_a_token_that_is_too_old(cast):
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast["alice"])
    answer = client.post("/ui/me/", {"theme": "dark"}, headers=SCRIPT)
    assert (answer.status_code, "X-Tablero-Token" in answer) == (403, True)


@pytest.mark.parametrize("host", ["a b", "under_score", ""])
def test_a_host_that_is_none_writes_no_log(client, db, caplog, host):
    answer = client.get("/ui/login/", headers={"host": host})

    assert answer.status_code == 400
    assert not caplog.records
