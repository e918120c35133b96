"""Cross-origin requests: what a browser is told before and after, by which rule."""

import pytest

from storage.domain.errors import CorsPreflightFailure, InvalidHeaderValue
from storage.domain.service.service_properties import CorsRule
from storage.protocol.cors import preflight, response_headers

A, B = "https://a.example", "http://b.example:8080"


def rule(origins, methods, allowed="", exposed="", max_age=60):
    return CorsRule(*(tuple(text.split()) for text in (origins, methods, allowed, exposed)), max_age)


def asking(origin=A, method="GET", headers=None):
    fields = {"origin": origin, "access-control-request-method": method}
    if headers is not None:
        fields["access-control-request-headers"] = headers
    return {name.encode(): value.encode() for name, value in fields.items() if value is not None}


def told(headers):
    names = [name for name, _ in headers]
    assert len(set(names)) == len(names)
    return {name.decode(): value.decode() for name, value in headers}


# before


EXACT = rule(A, "GET PUT", "content-type x-ms-* Accept", max_age=5)
ANY = rule("*", "GET", "*")


def test_preflight_is_told_origin_method_headers_and_age():
    answer = preflight([EXACT], asking(method="PUT", headers="Content-Type, x-ms-date,ACCEPT"))

    assert told(answer) == {
        "Access-Control-Allow-Origin": A,
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Allow-Methods": "PUT",
        "Access-Control-Allow-Headers": "Content-Type, x-ms-date,ACCEPT",
        "Access-Control-Max-Age": "5",
    }


def test_preflight_of_any_origin_is_told_so_without_credentials():
    assert told(preflight([ANY], asking())) == {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": "GET",
        "Access-Control-Max-Age": "60",
    }


@pytest.mark.parametrize(
    ("rules", "request_"),
    [
        ([EXACT], asking()),
        ([EXACT], asking(headers="")),
        ([EXACT], asking(headers="x-ms-")),
        ([EXACT], asking(headers="X-MS-anything")),
        ([EXACT], asking(headers=" accept ,, content-type ")),
        ([ANY], asking(origin=B)),
        ([ANY], asking(origin="null")),
        ([ANY], asking(headers="anything, at-all")),
        ([rule(f"{B} {A}", "GET")], asking()),
        ([rule(B, "GET"), EXACT], asking()),
        ([rule(A, "PUT"), EXACT], asking()),
        ([rule(A, "MERGE PATCH")], asking(method="MERGE")),
    ],
)
def test_preflight_passes(rules, request_):
    assert preflight(rules, request_)


@pytest.mark.parametrize(
    ("rules", "request_"),
    [
        ([], asking()),
        ([EXACT], asking(origin=B)),
        ([EXACT], asking(origin=A.upper())),
        ([EXACT], asking(origin=A + "/")),
        ([EXACT], asking(origin=A + ":443")),
        ([EXACT], asking(origin="http://a.example")),
        ([EXACT], asking(origin="https://b.a.example")),
        ([EXACT], asking(origin="*")),
        ([EXACT], asking(method="DELETE")),
        ([EXACT], asking(method="get")),
        ([EXACT], asking(headers="authorization")),
        ([EXACT], asking(headers="accept, authorization")),
        ([EXACT], asking(headers="x-ms")),
        ([EXACT], asking(headers="accept-charset")),
        ([rule(A, "GET")], asking(headers="accept")),
    ],
)
def test_preflight_fails(rules, request_):
    with pytest.raises(CorsPreflightFailure):
        preflight(rules, request_)


def test_the_first_rule_for_origin_and_method_decides():
    narrow, wide = rule("*", "GET", "accept"), rule(A, "GET", "*")

    with pytest.raises(CorsPreflightFailure):
        preflight([narrow, wide], asking(headers="authorization"))
    assert (
        told(preflight([wide, narrow], asking(headers="authorization")))["Access-Control-Allow-Origin"] == A
    )
    assert told(preflight([narrow, wide], asking()))["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("missing", [{"origin": None}, {"method": None}, {"origin": ""}, {"method": ""}])
def test_preflight_without_a_header_it_must_have(missing):
    for rules in ([], [ANY]):
        with pytest.raises(InvalidHeaderValue, match="A required CORS header is not present"):
            preflight(rules, asking(**missing))


# after


VARY = {"Vary": "Origin"}
NAMED = {"Access-Control-Allow-Origin": A, "Access-Control-Allow-Credentials": "true"}
STAR = {"Access-Control-Allow-Origin": "*"}
NAMING = [rule(A, "GET HEAD POST")]
EVERYBODY = [rule("*", "GET HEAD POST")]


@pytest.mark.parametrize(
    ("rules", "method", "origin", "headers"),
    [
        ([], "GET", None, {}),
        ([], "GET", A, {}),
        ([], "POST", A, {}),
        (NAMING, "GET", None, VARY),
        (NAMING, "HEAD", None, VARY),
        (NAMING, "POST", None, {}),
        (NAMING, "GET", A, {**NAMED, **VARY}),
        (NAMING, "HEAD", A, {**NAMED, **VARY}),
        (NAMING, "POST", A, NAMED),
        (NAMING, "GET", B, VARY),
        (NAMING, "GET", A.upper(), VARY),
        (NAMING, "GET", "*", VARY),
        (NAMING, "POST", B, {}),
        (NAMING, "PUT", A, {}),
        (EVERYBODY, "GET", None, {}),
        (EVERYBODY, "GET", A, STAR),
        (EVERYBODY, "GET", "null", STAR),
        (EVERYBODY, "POST", A, STAR),
        (EVERYBODY, "PUT", A, {}),
        ([rule("*", "PUT")], "GET", None, VARY),
        ([rule("*", "PUT")], "GET", A, VARY),
        (NAMING + EVERYBODY, "GET", None, {}),
        (NAMING + EVERYBODY, "GET", A, {**NAMED, **VARY}),
        (NAMING + EVERYBODY, "GET", B, STAR),
        (EVERYBODY + NAMING, "GET", A, STAR),
        ([rule(f"* {A}", "GET")], "GET", A, {**NAMED, **VARY}),
        ([rule(f"* {A}", "GET")], "GET", B, STAR),
    ],
)
def test_an_answer(rules, method, origin, headers):
    assert told(response_headers(rules, method, origin and origin.encode(), [])) == headers


@pytest.mark.parametrize(
    ("exposed", "names"),
    [
        ("", None),
        ("ETag", "ETag"),
        ("ETag x-ms-date", "ETag, x-ms-date"),
        ("*", "Server, x-ms-request-id, x-ms-version"),
        ("x-ms-*", "x-ms-request-id, x-ms-version"),
        ("X-MS-R*", "x-ms-request-id"),
        ("X-Ms-Version x-ms-*", "X-Ms-Version, x-ms-request-id"),
        ("x-ms-meta*", None),
        ("x-ms-* *", "x-ms-request-id, x-ms-version, Server"),
    ],
)
def test_exposes_what_is_listed_and_of_what_is_sent_what_a_prefix_covers(exposed, names):
    sent = [(b"Server", b"s"), (b"x-ms-request-id", b"1"), (b"x-ms-version", b"2")]

    answer = response_headers([rule(A, "GET", "", exposed)], "GET", A.encode(), sent)

    assert told(answer).get("Access-Control-Expose-Headers") == names
