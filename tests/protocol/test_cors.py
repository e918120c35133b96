"""Cross-origin requests: what a browser is told before and after, by which rule."""

import pytest

from storage.domain.service_properties.properties import CorsRule
from storage.protocol.cors import preflight, response_headers

A, B = "https://a.example", "http://b.example:8080"


def rule(origins, methods, allowed="", exposed="", max_age=60):
    return CorsRule(*(tuple(text.split()) for text in (origins, methods, allowed, exposed)), max_age)


def told(headers):
    assert len(dict(headers)) == len(headers)
    return {name.decode(): value.decode() for name, value in headers}


ANY = rule("*", "GET", "*")
NAMED_RULE = rule(A, "GET PUT", "content-type x-ms-* Accept")


@pytest.mark.parametrize(
    ("rules", "headers"),
    [
        ([NAMED_RULE], ""),
        ([NAMED_RULE], "x-ms-"),
        ([NAMED_RULE], " accept ,, content-type "),
        ([ANY], "anything, at-all"),
        ([rule(f"{B} {A}", "GET")], ""),
        ([rule(B, "GET"), NAMED_RULE], ""),
        ([rule(A, "PUT"), NAMED_RULE], ""),
    ],
)
def test_preflight_passes(rules, headers):
    fields = {"origin": A, "access-control-request-method": "GET", "access-control-request-headers": headers}
    assert preflight(rules, {name.encode(): value.encode() for name, value in fields.items()})


VARY = {"Vary": "Origin"}
NAMED = {"Access-Control-Allow-Origin": A, "Access-Control-Allow-Credentials": "true"}
STAR = {"Access-Control-Allow-Origin": "*"}
NAMING = [rule(A, "GET HEAD POST")]
EVERYBODY = [rule("*", "GET HEAD POST")]


@pytest.mark.parametrize(
    ("rules", "method", "origin", "headers"),
    [
        ([], "GET", None, {}),
        (NAMING, "GET", None, VARY),
        (NAMING, "POST", None, {}),
        (NAMING, "GET", A, {**NAMED, **VARY}),
        (NAMING, "POST", A, NAMED),
        (NAMING, "GET", B, VARY),
        (NAMING, "GET", "*", VARY),
        (NAMING, "PUT", A, {}),
        (EVERYBODY, "GET", A, STAR),
        (EVERYBODY, "POST", A, STAR),
        ([rule("*", "PUT")], "GET", None, VARY),
        ([rule("*", "PUT")], "GET", A, VARY),
        (NAMING + EVERYBODY, "GET", None, STAR),
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
def test_exposes_listed_headers_and_sent_ones_with_a_prefix(exposed, names):
    sent = [(b"Server", b"s"), (b"x-ms-request-id", b"1"), (b"x-ms-version", b"2")]

    answer = response_headers([rule(A, "GET", "", exposed)], "GET", A.encode(), sent)

    assert told(answer).get("Access-Control-Expose-Headers") == names
