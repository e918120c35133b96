"""Lines of the request log, and which requests have one."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from storage.domain.access.grants import Operation
from storage.domain.requests.observed import Authentication, ObservedOperation, ObservedRequest
from storage.domain.requests.request_log import LogEntry, format_lines, should_log
from storage.domain.service.service_properties import Logging

STARTED = datetime(2026, 11, 21, 13, 5, 7, 123456, tzinfo=UTC)
OBSERVED = ObservedRequest(
    started=10.0,
    account_id=1,
    account="people",
    operation=Operation.INSERT_ENTITY,
    authentication=Authentication.KEY,
    address="192.0.2.1",
    port=4711,
    agent=b"Browser/1.0 (X11; Linux)",
    status=409,
    error="EntityAlreadyExists",
    ingress=30,
    egress=200,
    answered=10.0124,
    sent=10.0136,
)
ENTRY = LogEntry(
    url="http://host/people/Staff?timeout=5&a=b",
    key="/people/Staff",
    request_id="11111111-2222-3333-4444-555555555555",
    version="2019-02-02",
    request_header_size=300,
    response_header_size=250,
    content_length=30,
    client_request_id="mine",
)


def line(observed=OBSERVED, entry=ENTRY):
    (only,) = format_lines(observed, entry, STARTED)
    return only


def test_a_line_has_the_fields_of_the_service():
    assert line() == (
        "1.0;2026-11-21T13:05:07.1234560Z;InsertEntity;EntityAlreadyExists;409;14;12;authenticated;people;people;table;"
        '"http://host/people/Staff?timeout=5&amp;a=b";"/people/Staff";11111111-2222-3333-4444-555555555555;0;'
        '192.0.2.1:4711;2019-02-02;300;30;250;200;30;;;;;;"Browser/1.0 (X11; Linux)";;"mine"'
    )


@pytest.mark.parametrize(
    ("version", "authentication", "error", "expected"),
    [
        ("2015-12-11", Authentication.KEY, "EntityAlreadyExists", "ClientOtherError"),
        ("2015-12-11", Authentication.SAS, "EntityAlreadyExists", "SASClientOtherError"),
        ("2017-04-17", Authentication.KEY, "EntityAlreadyExists", "EntityAlreadyExists"),
        ("", Authentication.KEY, "EntityAlreadyExists", "ClientOtherError"),
    ],
)
def test_says_the_error_by_its_code_to_later_versions(version, authentication, error, expected):
    observed = replace(OBSERVED, authentication=authentication, error=error)

    assert line(observed, replace(ENTRY, version=version)).split(";")[3] == expected


def test_says_who_asked_only_of_the_owner():
    anonymous = replace(OBSERVED, authentication=Authentication.ANONYMOUS, status=403, operation=None)

    fields = line(anonymous).split(";")[2:10]

    assert fields == ["Unknown", "AnonymousAuthorizationError", "403", "14", "12", "anonymous", "", "people"]


def test_nothing_that_was_sent_makes_a_field_or_a_line_of_its_own():
    hostile = 'a";b\n1.0;c\r\u2028<&\x00\x85'

    found = line(
        replace(OBSERVED, agent=hostile[:-4].encode("latin-1", "ignore")), replace(ENTRY, key=hostile)
    )

    assert '"a&quot;;b&#10;1.0;c&#13;&#8232;&lt;&amp;&#0;&#133;"' in found
    assert len(found.splitlines()) == 1


def test_quotes_what_is_usually_plain():
    found = line(entry=replace(ENTRY, version="2019;\n", conditions='If-Match=W/"datetime"'))

    assert len(found.splitlines()) == 1
    assert ';"2019;&#10;";' in found
    assert ';"If-Match=W/&quot;datetime&quot;";' in found
    assert ";[2001:db8::1]:4711;" in line(replace(OBSERVED, address="2001:db8::1"))


def test_a_change_set_has_a_line_for_itself_and_one_for_each_operation():
    parts = (
        ObservedOperation(Operation.INSERT_ENTITY, 201, "", "/people/Staff"),
        ObservedOperation(Operation.DELETE_ENTITY, 404, "ResourceNotFound", "/people/Staff"),
    )
    observed = replace(
        OBSERVED, operation=Operation.ENTITY_GROUP_TRANSACTION, status=202, error="", parts=parts
    )

    found = [text.split(";") for text in format_lines(observed, ENTRY, STARTED)]

    assert [(fields[2], fields[3], fields[4]) for fields in found] == [
        ("EntityGroupTransaction", "Success", "202"),
        ("InsertEntity", "Success", "201"),
        ("DeleteEntity", "ResourceNotFound", "404"),
    ]
    # the URL holds a semicolon
    assert [fields[15] for fields in found] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Operation.QUERY_ENTITIES, Logging(read=True)),
        (Operation.PREFLIGHT, Logging(read=True)),
        (None, Logging(read=True)),
        (Operation.INSERT_ENTITY, Logging(write=True)),
        (Operation.SET_SERVICE_PROPERTIES, Logging(write=True)),
        (Operation.DELETE_ENTITY, Logging(delete=True)),
    ],
)
def test_logs_what_the_account_wants(operation, expected):
    for logging in (Logging(read=True), Logging(write=True), Logging(delete=True)):
        assert should_log(logging, operation) == (logging == expected)
    assert not should_log(Logging(), operation)
