"""The service properties in the console: CORS rules with a tester, logs and metrics, XML."""

import re

import pytest

from console.accounts.forms.cors import move_rule
from storage.accounts import service_properties
from storage.domain.service_properties.properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Logging,
    Metrics,
    ServiceProperties,
)
from storage.models import Account
from tests.console.forms import lists_of

PAGE = "/ui/a/acme/service/"
SAVE = "/ui/a/acme/service/save/"
HTMX = {"HX-Request": "true"}
RULE = CorsRule(("https://a.example",), ("GET", "PUT"), ("content-type", "x-ms-*"), (), 60)
FIELDS = {
    "cors-TOTAL_FORMS": "1",
    "cors-INITIAL_FORMS": "1",
    "cors-0-origins": "https://a.example",
    "cors-0-methods": ["GET", "PUT"],
    "cors-0-allowed_headers": "content-type,  x-ms-*",
    "cors-0-exposed_headers": "",
    "cors-0-max_age": "60",
    "hour_metrics-enabled": "on",
    "hour_metrics-include_apis": "on",
    "hour_metrics-retention": "7",
}


def text(answer):
    """Return the page with its line breaks as spaces."""
    return " ".join(answer.content.decode().split())


def version(client):
    return re.search(r'name="version" value="([0-9a-f]{16})"', text(client.get(PAGE)))[1]


def stored():
    return service_properties.for_account(Account.objects.get(name="acme"))


def said(client):
    return " ".join(str(message) for message in client.get(PAGE).context["messages"])


@pytest.fixture
def keep(account):
    def keep(*rules, **parts):
        service_properties.replace(account, lambda _: ServiceProperties(cors=rules, **parts))

    return keep


def test_shows_what_is_stored(visit, keep):
    keep(RULE, logging=Logging(read=True, retention=3))
    page = text(visit("max").get(PAGE))
    assert 'value="https://a.example"' in page
    assert 'value="content-type, x-ms-*"' in page
    assert 'name="logging-retention" value="3"' in page
    viewer = text(visit("victor").get(PAGE))
    assert 'value="https://a.example"' in viewer
    assert 'value="save"' not in viewer
    assert '<fieldset class="stack" disabled>' in viewer


def test_saves(visit, account):
    client = visit("max")
    data = {**FIELDS, "version": version(client), "logging-write": "on", "logging-retention": " 30 "}
    assert client.post(SAVE, data)["Location"] == PAGE
    assert stored() == ServiceProperties(Logging(write=True, retention=30), cors=(RULE,))
    page = text(client.get(PAGE))
    assert "Saved the service properties." in page
    assert "/ui/undo/" in page
    data["version"] = version(client)
    client.post(SAVE, data)
    assert "Nothing was changed." in said(client)


def test_saving_unchanged_properties_changes_nothing(visit, account):
    client = visit("max")
    for properties in [
        DEFAULT_PROPERTIES,
        ServiceProperties(
            Logging(read=True, write=True, delete=True, retention=365),
            Metrics(),
            Metrics(enabled=True),
            (RULE, CorsRule(("*",), ("OPTIONS", "GET"), (), ("*",), 0)),
        ),
    ]:
        service_properties.replace(account, lambda _, properties=properties: properties)
        client.post(SAVE, lists_of(client.get(PAGE), "service-form"))
        assert "Nothing was changed." in said(client), properties
        assert stored() == properties, properties


def test_refuses_a_value_at_its_place(visit, account):
    client = visit("max")
    for field, value, code in [
        ("cors-0-origins", "", "InvalidXmlNodeValue"),
        ("cors-0-methods", [], "InvalidXmlNodeValue"),
        ("cors-0-allowed_headers", "a*, b*, c*", "InvalidXmlNodeValue"),
        ("cors-0-exposed_headers", "<script>", "InvalidXmlNodeValue"),
        ("cors-0-max_age", "2147483648", "InvalidXmlNodeValue"),
        ("logging-retention", "0", "InvalidXmlDocument"),
        ("minute_metrics-retention", "x", "InvalidXmlNodeValue"),
    ]:
        data = {**FIELDS, "version": version(client), field: value}
        answer = client.post(SAVE, data, headers=HTMX)
        assert answer.status_code == 422, (field, value)
        assert re.search(rf'id="id_{field}_error">.*?<code>{code}</code>', text(answer), re.DOTALL), field
        assert f'href="#id_{field}"' in text(answer), (field, value)
        assert "<script>" not in text(answer), (field, value)
        assert client.post(SAVE, {**data, "do": "xml"}).status_code == 422, (field, value)
        assert stored() == DEFAULT_PROPERTIES, (field, value)


def test_refuses_too_many_rules_and_bytes(visit, account):
    client = visit("max")
    six = {"cors-TOTAL_FORMS": "6"}
    for number in range(6):
        six |= {key.replace("-0-", f"-{number}-"): value for key, value in FIELDS.items() if "-0-" in key}
    answer = client.post(SAVE, {**FIELDS, **six, "version": version(client)})
    assert answer.status_code == 422
    assert "You can have at most 5 rules." in text(answer)
    assert 'value="add:blank"' not in text(answer)
    long = ",".join(f"https://{number}{'x' * 200}" for number in range(11))
    answer = client.post(SAVE, {**FIELDS, "cors-0-origins": long, "version": version(client)})
    assert "The limit is 2048 bytes." in text(answer)
    meter = client.post(SAVE, {**FIELDS, "cors-0-origins": long, "do": "check"}, headers=HTMX)
    assert text(meter).count("<div") == 1
    assert "of 2,048 bytes" in text(meter)
    assert stored() == DEFAULT_PROPERTIES


def test_edits_and_tries_rules_without_saving(visit, account):
    client = visit("max")
    assert 'value="add:blank"' in text(client.get(PAGE))
    answer = client.post(SAVE, {**FIELDS, "do": "add:localhost"}, headers=HTMX)
    assert 'name="cors-1-origins" value="http://localhost:3000' in text(answer)
    assert text(answer).lstrip().startswith('<div id="service"')
    assert "cors-0-origins" not in text(client.post(SAVE, {**FIELDS, "do": "remove:0"}))
    assert "cors-0-origins" in text(client.post(SAVE, {**FIELDS, "do": "up:7"}))
    question = {"origin": "https://a.example", "method": "GET", "headers": "", "do": "test"}
    answer = client.post(SAVE, {**FIELDS, **question}, headers=HTMX)
    assert text(answer).lstrip().startswith('<div id="verdict"')
    assert "Rule 1 allows the request." in text(answer)
    assert "unsaved rules" in text(answer)
    # typed text is restored after a reload
    answer = client.post(SAVE, {**FIELDS, "cors-0-max_age": "soon", "do": "restore"})
    assert 'value="soon"' in text(answer) and "Unsaved changes" in text(answer)
    answer = client.post(SAVE, {"xml": "<half", "version": "", "do": "restore"})
    assert "&lt;half" in text(answer) and "Unsaved changes" in text(answer)
    assert stored() == DEFAULT_PROPERTIES


@pytest.mark.parametrize(("index", "by", "order"), [
    (2, -1, "acb"), (0, 1, "bac"), (2, 1, "abc"), (0, -1, "abc"), (-1, 1, "abc"), (9, -1, "abc"),
])  # fmt: skip
def test_moves_a_rule(index, by, order):
    assert "".join(move_rule(index, by)(list("abc"))) == order


# XML


def test_form_and_xml_are_one(visit, keep):
    keep(RULE)
    client = visit("max")
    answer = client.post(
        SAVE, {**FIELDS, "version": version(client), "cors-0-origins": "*", "do": "xml"}, headers=HTMX
    )
    assert answer["HX-Replace-Url"] == f"{PAGE}?view=xml"
    assert "&lt;AllowedOrigins&gt;*&lt;/AllowedOrigins&gt;" in text(answer)
    xml = answer.context["xml"].replace("<AllowedOrigins>*", "<AllowedOrigins>http://b")
    answer = client.post(SAVE, {"xml": xml, "version": version(client), "do": "form"}, headers=HTMX)
    assert answer["HX-Replace-Url"] == PAGE
    assert 'name="cors-0-origins" value="http://b"' in text(answer)
    assert stored().cors == (RULE,)
    answer = client.post(SAVE, {"xml": xml, "version": version(client), "do": "save"})
    assert answer["Location"] == f"{PAGE}?view=xml"
    assert stored().cors[0].origins == ("http://b",)


def test_xml_of_a_part_leaves_the_rest(visit, keep):
    keep(RULE, logging=Logging(read=True))
    client = visit("max")
    client.post(
        SAVE,
        {"xml": "<StorageServiceProperties><Cors/></StorageServiceProperties>", "version": version(client)},
    )
    assert stored() == ServiceProperties(Logging(read=True))


def test_refuses_xml(visit, account):
    client = visit("max")
    for xml, told in [
        ("<StorageServiceProperties>\n<Cors></StorageServiceProperties>", "line 2, column 9"),
        ("<!DOCTYPE x><StorageServiceProperties/>", "InvalidXmlDocument"),
        ("<Other/>", "UnsupportedXmlNode"),
        (
            "<StorageServiceProperties><Cors><CorsRule/></Cors></StorageServiceProperties>",
            "MissingRequiredXmlNode",
        ),
    ]:
        answer = client.post(SAVE, {"xml": xml, "version": version(client)})
        assert answer.status_code == 422, (xml, told)
        assert told in text(answer), (xml, told)
        assert client.post(SAVE, {"xml": xml, "do": "form"}).status_code == 422, (xml, told)
        assert stored() == DEFAULT_PROPERTIES, (xml, told)


# two at once


def test_two_editors(visit, account, keep):
    client = visit("max")
    before = version(client)
    keep(CorsRule(("http://theirs",), ("GET",), (), (), 1))
    answer = client.post(SAVE, {**FIELDS, "version": before})
    assert answer.status_code == 409
    assert "http://theirs" in text(answer)
    assert "https://a.example" in text(answer)
    assert stored().cors[0].origins == ("http://theirs",)
    mine = {"xml": answer.context["xml"], "version": answer.context["version"]}
    client.post(SAVE, mine)
    assert stored().cors == (RULE,)
    assert client.post(SAVE, mine).status_code == 302  # it is as they want it already


def test_refuses_while_the_account_is_read_only(visit, account):
    account.read_only = True
    account.save()
    client = visit("max")
    assert client.post(SAVE, {**FIELDS, "version": version(client)}).status_code == 422
    assert stored() == DEFAULT_PROPERTIES


# the tester


def test_tries_a_request(visit, keep):
    keep(RULE, CorsRule(("http://b",), ("GET",), (), (), 1))
    client = visit("victor")
    for question, told in [
        (
            {"origin": "https://a.example", "method": "PUT", "headers": "X-MS-date, content-type"},
            "Rule 1 allows",
        ),
        ({"origin": "https://a.example", "method": "PUT", "headers": "x-other"}, "<code>x-other</code>"),
        ({"origin": "https://a.example", "method": "DELETE"}, "Rule 1 does not allow DELETE."),
        ({"origin": "http://c", "method": "GET"}, "Rule 2 does not match the origin."),
        ({"origin": "http://c", "method": "POST"}, "Rule 1 matches neither the origin nor the method."),
        ({"origin": "", "method": "GET"}, "InvalidHeaderValue"),
    ]:
        assert told in text(client.get(PAGE, question)), (question, told)
