"""The first run: one address, one admin, then nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client

from console.models import Setup, User
from console.people import link_tokens, setup

GOOD = {
    "username": "Ada@Example.com",
    "password": "correct horse",
    "repeated": "correct horse",
    "language": "tr",
}


ADDRESS = "/ui/setup/"


def opened(client, token):
    """Return a client after its browser has opened the printed link."""
    client.post(ADDRESS, {"token": token})
    return client


def test_makes_the_first_admin(db, client):
    assert b"Paste the whole link" in client.get(ADDRESS).content
    opened(client, setup.issue())
    assert b"Create the first admin" in client.get(ADDRESS).content
    answer = client.post(ADDRESS, GOOD)
    assert (answer.status_code, answer["Location"]) == (302, "/ui/")
    user = User.objects.get()
    assert (user.username, user.is_admin, user.language) == ("ada@example.com", True, "tr")
    assert user.check_password("correct horse")
    home = client.get("/ui/")
    assert home.status_code == 200
    assert home.context["user"] == user
    assert home["Content-Language"] == "tr"


def test_is_closed_for_good(db, client):
    tokens = [setup.issue(), setup.issue()]
    assert not any(token in str(Setup.objects.values_list()) for token in tokens)
    late = opened(Client(), tokens[1])
    opened(client, tokens[0]).post(ADDRESS, GOOD)
    assert late.post(ADDRESS, {**GOOD, "username": "eve"}).status_code == 404
    for token in (*tokens, "", "guess"):
        assert Client().get(ADDRESS).status_code == 404
        assert Client().post(ADDRESS, {"token": token}).status_code == 404
    User.objects.all().delete()
    assert not setup.is_open()


@pytest.mark.parametrize("token", ["", "guess", "\0", "é" * 100])
def test_refuses_a_wrong_token(db, client, token):
    setup.issue()
    assert client.post(ADDRESS, {"token": token}).status_code == 404
    assert b"Paste the whole link" in client.post(ADDRESS, GOOD).content
    assert not User.objects.exists()


def test_a_pasted_link_and_one_of_1_0_open_the_page(db, client):
    token = setup.issue()
    assert client.get(ADDRESS, {"token": token})["Location"] == f"{ADDRESS}#token={token}"
    assert client.post(ADDRESS, {"token": f" http://a/ui/setup/#token={token}\n"})["Location"] == ADDRESS
    assert b"Create the first admin" in client.get(ADDRESS).content


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"username": "ada lovelace"}, "username"),
        ({"username": "ıda"}, "username"),
        ({"password": "password1", "repeated": "password1"}, "password"),
        ({"password": "Ada@Example.com", "repeated": "Ada@Example.com"}, "password"),
        ({"repeated": "correct house"}, "repeated"),
        ({"language": "xx"}, "language"),
    ],
)
def test_refuses_invalid_fields(db, client, change, field):
    answer = opened(client, setup.issue()).post(ADDRESS, {**GOOD, **change})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [field]
    assert not User.objects.exists()
    assert b"correct horse" not in answer.content


def test_a_server_prints_the_address(db, client):
    line, _ = setup.announcement("http://127.0.0.1:10002")
    assert line.split()[1].startswith(f"http://127.0.0.1:10002{ADDRESS}#token=")
    opened(client, line.partition("=")[2]).post(ADDRESS, GOOD)
    assert list(setup.announcement("http://127.0.0.1:10002")) == [
        "Console:           http://127.0.0.1:10002/ui/"
    ]


@pytest.mark.django_db(transaction=True)
def test_only_one_of_concurrent_setups_succeeds():
    tokens = [link_tokens.hash_of(setup.issue()) for _ in range(4)]
    start = threading.Barrier(len(tokens))

    def run(number):
        try:
            start.wait()
            return setup.finish(tokens[number], f"user{number}", "correct horse", "en")
        finally:
            connection.close()

    with ThreadPoolExecutor(len(tokens)) as pool:
        made = list(pool.map(run, range(len(tokens))))
    assert [user for user in made if user] == list(User.objects.all())
    assert User.objects.count() == 1
