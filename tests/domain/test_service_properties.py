"""Service properties: what may be in them, and what a part of them changes."""

from dataclasses import replace

import pytest

from storage.domain.errors import InvalidXmlDocument, InvalidXmlNodeValue
from storage.domain.service.service_properties import (
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


def test_an_update_changes_what_it_names():
    properties = ServiceProperties(Logging(read=True), Metrics(), Metrics(True, False, 1), (RULE,))

    assert PropertiesUpdate().apply(properties) == properties
    assert PropertiesUpdate(cors=()).apply(properties) == replace(properties, cors=())
    assert PropertiesUpdate(logging=Logging()).apply(properties) == replace(properties, logging=Logging())
    every = PropertiesUpdate(Logging(), Metrics(), Metrics(), ())
    assert every.apply(properties) == ServiceProperties(Logging(), Metrics(), Metrics(), ())


@pytest.mark.parametrize("days", [1, 365, None])
def test_keeps_for_a_day_up_to_a_year(days):
    check_properties(
        ServiceProperties(Logging(retention=days), Metrics(retention=days), Metrics(retention=days))
    )


@pytest.mark.parametrize("days", [0, 366, -1, 10**9])
def test_refuses_other_retentions(days):
    refuses(InvalidXmlDocument, logging=Logging(retention=days))
    refuses(InvalidXmlDocument, hour_metrics=Metrics(retention=days))
    refuses(InvalidXmlDocument, minute_metrics=Metrics(retention=days))


@pytest.mark.parametrize(
    "changes",
    [
        {"origins": ("*",)},
        {"origins": ("*", "http://a")},
        {"origins": ("www.example.com", "null", "http://[::1]:80")},
        {"origins": tuple(f"http://{number}" for number in range(64))},
        {"origins": ("x" * 256,)},
        {"methods": ("DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH")},
        {"allowed_headers": (), "exposed_headers": ()},
        {"allowed_headers": ("*",), "exposed_headers": ("x-ms-*", "*")},
        {"allowed_headers": tuple(f"h{number}" for number in range(64)) + ("a*", "b*")},
        {"allowed_headers": ("x" * 255 + "*",)},
        {"max_age": 0},
        {"max_age": 2**31 - 1},
    ],
)
def test_accepts_a_rule(changes):
    check_properties(replace(DEFAULT_PROPERTIES, cors=(replace(RULE, **changes),)))


@pytest.mark.parametrize(
    "changes",
    [
        {"origins": ()},
        {"origins": ("",)},
        {"origins": ("a b",)},
        {"origins": ("a,b",)},
        {"origins": ("a\r\nX: y",)},
        {"origins": ("http://é",)},
        {"origins": tuple(f"a{number}" for number in range(65))},
        {"origins": ("x" * 257,)},
        {"methods": ()},
        {"methods": ("get",)},
        {"methods": ("GET", "TRACE")},
        {"methods": ("*",)},
        {"allowed_headers": ("",)},
        {"allowed_headers": ("a b",)},
        {"allowed_headers": ("a*b",)},
        {"allowed_headers": ("a**",)},
        {"exposed_headers": ("a\r\nX: y",)},
        {"exposed_headers": ("é",)},
        {"exposed_headers": ("a:",)},
        {"exposed_headers": ("x" * 257,)},
        {"allowed_headers": tuple(f"h{number}" for number in range(65))},
        {"allowed_headers": ("a*", "b*", "c*")},
        {"exposed_headers": ("a*", "b*", "*")},
        {"max_age": -1},
        {"max_age": 2**31},
    ],
)
def test_refuses_a_rule(changes):
    refuses(InvalidXmlNodeValue, cors=(replace(RULE, **changes),))


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
