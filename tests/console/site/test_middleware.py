"""Headers that every page has."""

import logging

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from console.site.middleware import response_headers
from storage.health import database_version
from tests.fixtures import PASSWORD


def test_headers():
    request = RequestFactory().get("/ui/")
    response = response_headers(lambda request: HttpResponse())(request)
    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Cookie, HX-Request, HX-Request-Type"
    assert "camera=()" in response["Permissions-Policy"]
    response = response_headers(lambda request: HttpResponse(headers={"Cache-Control": "no-store"}))(request)
    assert response["Cache-Control"] == "no-store"  # a view may say more


def test_browsers_stay_with_https(settings):
    """An address is http unless the connection has TLS or a trusted proxy says so, which its scheme tells."""

    def header(**options):
        request = RequestFactory().get("/ui/", **options)
        response = response_headers(lambda request: HttpResponse())(request)
        return response.get("Strict-Transport-Security")

    assert header(secure=True) == "max-age=31536000"
    assert header() is None
    assert header(secure=True, headers={"Host": "localhost:10002"}) is None  # other servers there have no TLS
    assert header(secure=True, headers={"Host": "tablero.localhost"}) is None
    assert header(headers={"X-Forwarded-Proto": "https"}) is None
    settings.STRICT_TRANSPORT_SECURITY = "max-age=0"
    assert header(secure=True) == "max-age=0"


def test_cookies_over_tls_have_a_prefix(visit):
    def cookies(**options):
        client = visit(None)
        answer = client.post("/ui/login/", {"login": "alice", "password": PASSWORD}, **options)
        assert client.get("/ui/me/", **options).status_code == 200
        return {name: bool(cookie["secure"]) for name, cookie in answer.cookies.items()}

    over_tls, plain = cookies(secure=True), cookies()
    assert over_tls["__Secure-tablero_session"] and all(over_tls.values())
    assert all(name.startswith("__Secure-tablero_") for name in over_tls)
    assert over_tls == {f"__Secure-{name}": True for name in plain} and not any(plain.values())


def test_a_cookie_with_the_prefix_wins_over_tls_and_is_nothing_without(visit):
    """Pages without TLS could set the plain name; sessions of 1.0 have it."""
    here, other = visit("alice"), visit("max")
    own = here.cookies["tablero_session"].value
    assert here.get("/ui/me/", secure=True).status_code == 200
    other.cookies["__Secure-tablero_session"] = own
    assert other.get("/ui/me/", secure=True).wsgi_request.user.username == "alice"
    assert other.get("/ui/me/").wsgi_request.user.username == "max"
    del other.cookies["tablero_session"]
    assert other.get("/ui/me/").status_code == 302


def test_invalid_input_is_logged_without_what_was_sent(visit, call, table, caplog):
    marked = "s3cret"
    with caplog.at_level(logging.INFO, "console.site.middleware"):
        assert visit("max").post("/ui/a/acme/tables/new/", {"name": f"1{marked}"}).status_code == 422
        assert call("max")("POST", "accounts/acme/tables", {"name": marked, marked: 1}).status_code == 400
        assert call("max")("PUT", "accounts/acme/tables").status_code == 405
    said = [record.getMessage() for record in caplog.records]
    for status, message in zip((422, 400, 405), said, strict=True):
        assert f"refused with {status} to max from 127.0.0.1: request " in message
    assert marked not in caplog.text


def test_refused_requests_are_logged(visit, caplog):
    with caplog.at_level(logging.INFO, "console.site.middleware"):
        assert visit("victor").post("/ui/a/acme/tables/new/", {"name": "orders"}).status_code == 403
        assert Client().get("/ui/api/v1/accounts").status_code == 401
    of_page, _ = caplog.records
    assert (of_page.user, of_page.account, of_page.operation) == ("victor", "acme", "tables:new")
    page, api = [record.getMessage() for record in caplog.records]
    assert page.startswith("POST /ui/a/acme/tables/new/ refused with 403 to victor from 127.0.0.1: request ")
    assert api.startswith(
        "GET /ui/api/v1/accounts refused with 401 to an unknown user from 127.0.0.1: request "
    )


def test_policies():
    headers = Client().get("/ui/appearance/").headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy + ";"
    assert "unsafe" not in policy
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_scripts_sign_in_without_leaving_their_page(visit):
    headers = {"HX-Request": "true"}
    answer = visit(None).post("/ui/a/acme/", headers=headers)
    assert (answer.status_code, answer["X-Tablero-Sign-In"]) == (
        401,
        "/ui/login/?next=%2Fui%2Flogin%2Fdone%2F",
    )
    assert answer.content == b""
    assert visit(None).post("/ui/a/acme/").status_code == 302


def test_a_stream_of_a_page_whose_session_is_gone_ends(visit):
    address = "/ui/a/acme/t/orders/live/"
    answer = visit(None).get(address, headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.content, answer.headers.get("Location")) == (204, b"", None)
    assert visit(None).get(address).status_code == 302


def test_a_form_sent_by_a_script_leads_to_the_next_page(visit):
    headers = {"HX-Request": "true", "HX-Request-Type": "full"}
    answer = visit("alice").post("/ui/a/acme/tables/new/", {"name": "orders"}, headers=headers)
    assert (answer.status_code, answer["HX-Redirect"]) == (204, "/ui/a/acme/t/orders/")


@pytest.fixture
def outdated():
    database_version.note(database_version.WRITER + 1)
    yield
    database_version.note(0)


def test_an_outdated_server_refuses_changes_and_says_why(visit, outdated):
    alice = visit("alice")
    page = alice.post("/ui/a/acme/tables/new/", {"name": "orders"})
    assert page.status_code == 503
    assert "A newer version of Tablero has upgraded the database." in page.content.decode()
    problem = Client().post("/ui/api/v1/accounts/", {"name": "other"}, content_type="application/json")
    assert (problem.status_code, problem["Content-Type"]) == (503, "application/problem+json")
    assert problem.json()["detail"].startswith("A newer version of Tablero has upgraded the database")
    assert alice.get("/ui/a/acme/").status_code == 200
