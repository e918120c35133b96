"""The management API of a live server: accounts that expire, concurrent and unexpected requests."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import hypothesis
import pytest
import requests
import schemathesis
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.waiting import wait_for

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def token(server):
    server.manage("user", "add", "manager", "--admin")
    return server.add_token("manager", "ci")


@pytest.mark.long
def test_a3_an_account_freezes_by_itself(server, token):
    """The server's own duty does it, within seconds; every process then refuses."""
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {token}"
    base = f"{server.url}/ui/api/v1/accounts"
    made = session.post(base, json={"name": "shortlived", "ttl": "1h"}, timeout=60).json()
    with TableServiceClient.from_connection_string(made["connection_string"], retry_total=0) as service:
        service.create_table("people")
        deadline = time.monotonic() + 60

        def end_soon():
            end = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
            return session.patch(f"{base}/shortlived", json={"expires_at": end}, timeout=60)

        while (answer := end_soon()).status_code == 400:  # on a busy machine the end may have come
            assert time.monotonic() < deadline, answer.text
        answer.raise_for_status()
        wait_for(lambda: session.get(f"{base}/shortlived", timeout=60).json()["state"] == "expired")
        with pytest.raises(HttpResponseError) as refused:
            service.create_table("more")
        assert (refused.value.status_code, refused.value.error_code) == (403, "AccountIsDisabled")
        thawed = session.patch(f"{base}/shortlived", json={"ttl": "1h"}, timeout=60).json()
        assert (thawed["state"], thawed["deleted_at"]) == ("active", None)
        assert [table.name for table in service.list_tables()] == ["people"]
    session.delete(f"{base}/shortlived?with_tables=true", timeout=60).raise_for_status()


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("accounts", {"labels": {"of": "many"}}, "name"),
        ("accounts/devstoreaccount1/sas", {"label": "x", "permissions": "r", "ttl": "1h"}, "token"),
    ],
)
def test_concurrent_requests_with_one_idempotency_key_act_once(server, token, path, body, name):
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"at-once-{name}"}

    def ask(_):
        asked = 0
        while True:
            asked += 1
            answer = requests.post(f"{server.url}/ui/api/v1/{path}", json=body, headers=headers, timeout=60)
            # On a slow machine a turn may not come in time, which asks for another try.
            if answer.status_code != 503 or asked == 10:
                return answer

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201], answers[0].text
    assert len({answer.json()[name] for answer in answers}) == 1


def test_a_body_may_come_in_chunks(server, token):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    parts = (part for part in (b'{"na', b'me": "chunky"}'))
    made = requests.post(f"{server.url}/ui/api/v1/accounts", data=parts, headers=headers, timeout=60)
    assert (made.status_code, made.json()["name"]) == (201, "chunky")
    requests.delete(f"{server.url}/ui/api/v1/accounts/chunky", headers=headers, timeout=60).raise_for_status()


def test_an_oversized_body_is_a_problem(server, token):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = b'{"label": "' + b"x" * 2**20 + b'"}'
    refused = requests.post(f"{server.url}/ui/api/v1/accounts", data=body, headers=headers, timeout=60)
    assert (refused.status_code, refused.json()["status"]) == (413, 413)
    assert refused.headers["Content-Type"] == "application/problem+json"


@pytest.fixture(scope="module")
def api(server, token):
    """Return the OpenAPI document, and make an account for the requests."""
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {token}"
    base = f"{server.url}/ui/api/v1"
    session.post(f"{base}/accounts", json={"name": "fuzz"}, timeout=60).raise_for_status()
    session.post(f"{base}/accounts/fuzz/tables", json={"name": "people"}, timeout=60).raise_for_status()
    issued = session.post(
        f"{base}/accounts/fuzz/sas",
        json={"label": "x", "table": "people", "permissions": "r", "ttl": "1h"},
        timeout=60,
    ).json()
    yield schemathesis.openapi.from_url(f"{base}/schema"), issued["fingerprint"]
    for account in session.get(f"{base}/accounts?limit=500", timeout=60).json()["items"]:
        if account["name"] != server.account:
            session.delete(f"{base}/accounts/{account['name']}?with_tables=true", timeout=60)


SETTINGS = hypothesis.settings(
    max_examples=3,  # many more are what `python3 -m tests.tools.fuzz` is for
    derandomize=True,
    deadline=None,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.mark.long
def test_answers_are_as_documented(api, token):
    schema, fingerprint = api
    there = {"account": "fuzz", "table": "people", "fingerprint": fingerprint, "key": "key1"}
    headers = {"Authorization": f"Bearer {token}"}

    def ask(case):
        if case.method != "DELETE":  # existing objects stay
            given = case.path_parameters or {}
            case.path_parameters = {name: there.get(name, value) for name, value in given.items()}
        case.call_and_validate(headers=headers, checks=CHECKS, timeout=60)

    asked = 0
    for operation in schema.get_all_operations():
        SETTINGS(hypothesis.given(operation.ok().as_strategy())(ask))()
        asked += 1
    assert asked > 25
