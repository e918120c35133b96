"""Passwords: any of eight characters or more, exactly as typed, but none that is easy to guess."""

import pytest
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client

from console.models import User
from console.people.passwords import WORDS
from tests.fixtures import PASSWORD

PLACE = "/ui/me/password/"
WEAK = (
    *("7 chars", "password1", "iloveyou", "tablero-2026", "Azure_Storage!", "devstoreaccount1"),
    *("p@ssw0rd4cc0unt", "alice123"),
)


def change(client, password, current=PASSWORD):
    return client.post(PLACE, {"current": current, "password": password, "repeated": password})


def test_any_composition_and_length(visit):
    client, current = visit("alice"), PASSWORD
    for password in ("49215528331790", " Ends with blanks ", "ş" * 64, "Abc " * 256):
        assert change(client, password, current).status_code == 302, password
        current = password
        for typed, is_right in ((password, True), (password.swapcase() + "x", False)):
            answer = Client().post("/ui/login/", {"login": "alice", "password": typed})
            assert (answer.status_code == 302) is is_right, password
    for password in ("lower case only", "admin of nothing", "tabular data"):
        validate_password(password, User(username="alice"))


def test_refuses_weak_passwords_and_every_word(visit):
    for password in (*WEAK, *(f"{word}-{word}" for word in WORDS)):
        with pytest.raises(ValidationError):
            validate_password(password, User(username="alice"))
    refused = change(visit("alice"), "tablero-2026")
    assert refused.status_code == 422
    assert list(refused.context["form"].errors) == ["password"]


def test_the_browser_fills_them_in(visit):
    page = visit("alice").get(PLACE).content.decode()
    assert page.count('type="password"') == 3
    assert 'autocomplete="current-password"' in page
    assert page.count('autocomplete="new-password"') == 2
