"""Service properties: what may be in them, and what a part of them changes."""

from dataclasses import replace

import pytest

from storage.domain.errors import InvalidXmlDocument, InvalidXmlNodeValue
from storage.domain.service_properties.properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Logging,
    Metrics,
    PropertiesUpdate,
    ServiceProperties,
    check_properties,
)

RULE = CorsRule(("https://a.example",), ("GET",), ("x-ms-*",), ("*",), 60)


def refuses(error, **changes):
    with pytest.raises(error):
        check_properties(replace(DEFAULT_PROPERTIES, **changes))


def test_a_new_account_has_its_hours_measured_for_a_week():
    check_properties(DEFAULT_PROPERTIES)
    assert ServiceProperties(Logging(), Metrics(True, True, 7), Metrics(), ()) == DEFAULT_PROPERTIES


def test_an_update_changes_only_named_properties():
    properties = ServiceProperties(Logging(read=True), Metrics(), Metrics(True, False, 1), (RULE,))

    assert PropertiesUpdate().apply(properties) == properties
    assert PropertiesUpdate(cors=()).apply(properties) == replace(properties, cors=())
    assert PropertiesUpdate(logging=Logging()).apply(properties) == replace(properties, logging=Logging())
    every = PropertiesUpdate(Logging(), Metrics(), Metrics(), ())
    assert every.apply(properties) == ServiceProperties(Logging(), Metrics(), Metrics(), ())


@pytest.mark.parametrize(
    ("part", "kind"), [("logging", Logging), ("hour_metrics", Metrics), ("minute_metrics", Metrics)]
)
def test_keeps_for_a_day_up_to_a_year(part, kind):
    for days in (1, 365, None):
        check_properties(replace(DEFAULT_PROPERTIES, **{part: kind(retention=days)}))
    for days in (0, 366, -1):
        refuses(InvalidXmlDocument, **{part: kind(retention=days)})


LETTERS = {number: tuple(f"a{n}" for n in range(number)) for number in (64, 65)}
RULES = {
    "origins": [("*", "http://a"), ("www.example.com", "null", "http://[::1]:80"), LETTERS[64], ("x" * 256,)],
    "methods": [("DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH")],
    "allowed_headers": [(), ("*",), (*LETTERS[64], "a*", "b*"), ("x" * 255 + "*",)],
    "exposed_headers": [(), ("x-ms-*", "*")],
    "max_age": [0, 2**31 - 1],
}
NO_RULES = {
    "origins": [(), ("",), ("a b",), ("a,b",), ("a\r\nX: y",), ("http://é",), LETTERS[65], ("x" * 257,)],
    "methods": [(), ("get",), ("GET", "LINK"), ("*",)],
    "allowed_headers": [("",), ("a b",), ("a*b",), ("a**",), LETTERS[65], ("a*", "b*", "c*")],
    "exposed_headers": [("a\r\nX: y",), ("é",), ("a:",), ("x" * 257,), ("a*", "b*", "*")],
    "max_age": [-1, 2**31],
}


@pytest.mark.parametrize("field", RULES)
def test_rules(field):
    for value in RULES[field]:
        check_properties(replace(DEFAULT_PROPERTIES, cors=(replace(RULE, **{field: value}),)))
    for value in NO_RULES[field]:
        refuses(InvalidXmlNodeValue, cors=(replace(RULE, **{field: value}),))


def test_refuses_a_sixth_rule():
    check_properties(replace(DEFAULT_PROPERTIES, cors=(RULE,) * 5))
    refuses(InvalidXmlDocument, cors=(RULE,) * 6)


def test_refuses_more_than_2_kib_of_rules():
    def rules(size):
        # GET, 60 and the commas between the origins count as well
        rest = size - len("GET60") - 7 * 257
        return (CorsRule(("x" * 256,) * 7 + ("y" * rest,), ("GET",), (), (), 60),)

    check_properties(replace(DEFAULT_PROPERTIES, cors=rules(2048)))
    refuses(InvalidXmlDocument, cors=rules(2049))
