"""Passwords: any of eight characters or more, exactly as typed, but none that is easy to guess."""

import pytest
from django.test import Client

from console.people.passwords import WORDS

PLACE = "/ui/me/password/"


def change(client, password):
    answer = client.post(PLACE, {"current": "correct horse", "password": password, "repeated": password})
    return answer.status_code == 302


@pytest.mark.parametrize(
    "password",
    [
        "lower case only",
        "49215528331790",
        " Ends with blanks ",
        "ş" * 64,
        "Abc " * 256,
        "admin of nothing",
        "tabular data",
    ],
)
def test_any_composition_and_length(visit, cast, password):
    assert change(visit("alice"), password)
    for typed, is_right in ((password, True), (password.swapcase() + "x", False)):
        answer = Client().post("/ui/login/", {"login": "alice", "password": typed})
        assert (answer.status_code == 302) is is_right


@pytest.mark.parametrize(
    "password",
    [
        "7 chars", "password1", "iloveyou", "tablero-2026", "Azure_Storage!", "devstoreaccount1", "p@ssw0rd4cc0unt",
        "alice123",
    ],
)  # fmt: skip
def test_refuses_weak_passwords(visit, password):
    assert not change(visit("alice"), password)


def test_every_word_is_refused(visit):
    client = visit("alice")
    assert [word for word in WORDS if change(client, f"{word}-{word}")] == []


def test_the_browser_fills_them_in(visit):
    page = visit("alice").get(PLACE).content.decode()
    assert page.count('type="password"') == 3
    assert 'autocomplete="current-password"' in page
    assert page.count('autocomplete="new-password"') == 2
