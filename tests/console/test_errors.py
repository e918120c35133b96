"""The pages of what went wrong."""

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client

from console.views import home


def test_not_found_does_not_ask_to_sign_in(client, db):
    answer = client.get("/ui/nothing/")
    assert answer.status_code == 404
    assert b"There is no such page" in answer.content


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (PermissionDenied("This needs the role Owner."), 403, "This needs the role Owner."),
        (PermissionDenied(), 403, "Your role does not allow it."),
        (ZeroDivisionError("secret"), 500, "Something went wrong here"),
    ],
)
def test_what_a_view_raises(visit, monkeypatch, error, status, text):
    def fail(*arguments, **_):
        raise error

    monkeypatch.setattr(home, "visible_accounts", fail)
    client = visit("alice")
    client.raise_request_exception = False
    answer = client.get("/ui/")
    assert answer.status_code == status
    assert text in answer.content.decode()
    assert "secret" not in answer.content.decode()
    assert "default-src 'none'" in answer["Content-Security-Policy"]


def test_a_form_of_another_site(cast):
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast["alice"])
    answer = client.post("/ui/me/", {"theme": "dark"})
    assert answer.status_code == 403
    assert b"This form is too old" in answer.content
