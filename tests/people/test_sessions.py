"""Signing in and out."""

from console.site.addresses import is_console_path
from tests.fixtures import PASSWORD


def sign_in(client, login="alice", password=PASSWORD, **more):
    return client.post("/ui/login/", {"login": login, "password": password, **more})


def test_signs_in_and_out(visit):
    client = visit(None)
    answer = sign_in(client, login=" ALICE ", next="/ui/a/acme/?q=pe")
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/acme/?q=pe")
    assert client.get("/ui/").status_code == 200
    answer = client.post("/ui/logout/")
    assert (answer.status_code, answer["Location"]) == (302, "/ui/login/")
    assert answer["Clear-Site-Data"] == '"cache", "storage"'
    assert client.get("/ui/").status_code == 302
    assert client.get("/ui/signup/").status_code == 404


def test_brings_the_appearance_of_the_user(visit, cast):
    cast["alice"].remember(language="tr", theme="dark", density="compact")
    cookies = sign_in(visit(None)).cookies
    assert cookies["tablero_language"].value == "tr"
    assert cookies["tablero_theme"].value == "dark"
    assert cookies["tablero_density"].value == "compact"
    assert cookies["tablero_session"]["httponly"]
    assert cookies["tablero_session"]["path"] == "/ui/"


def test_says_the_same_whatever_is_wrong(visit):
    answers = [sign_in(visit(None), password="wrong horse"), sign_in(visit(None), login="nobody")]
    assert [answer.status_code for answer in answers] == [422, 422]
    errors = [answer.context["form"].non_field_errors() for answer in answers]
    assert errors[0] == errors[1]
    assert errors[0]


def test_the_sixth_attempt_waits(visit):
    client = visit(None)
    for _ in range(5):
        sign_in(client, password="wrong horse")
    answer = sign_in(client)
    assert answer.status_code == 429
    assert 200 < int(answer["Retry-After"]) <= 300
    assert f"Try again in {answer['Retry-After']} seconds." in str(answer.context["form"].non_field_errors())
    assert client.get("/ui/").status_code == 302
    assert sign_in(visit(None), login="max").status_code == 302


def test_goes_nowhere_else(visit):
    for next_ in [
        "https://evil.example/",
        "//evil.example/ui/",
        "/acme/people",
        "/ui/../acme/people",
        "/ui/%2e%2e/acme",
        "/\\evil.example",
        "javascript:alert(1)",
        "ui/",
        "/ui",
        "/uix/",
        "/ui/\n//evil.example",
    ]:
        assert not is_console_path(next_), next_
    assert sign_in(visit(None), next="//evil.example/ui/")["Location"] == "/ui/"
