"""Findings about tables made like people's: all that are true, and no other; and what their edits leave."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import requests
from azure.data.tables import TableServiceClient

from storage.domain.filters.access_plan import AccessPath, plan_access
from storage.domain.filters.parser import parse
from tests.design.accounts import EXAMPLES, Example, ask, fill
from tests.live_server import LiveServer
from tests.waiting import wait_for

pytestmark = pytest.mark.long
ENTITIES, REQUESTS = 2_000, 1_200
ACCOUNT = "designs"
# facts that tell what a finding is about, and the expression of a new PartitionKey
SHOW = """
import json
from storage.models import Table
from storage.design.design import describe
design = describe(Table.objects.get(account__name={account!r}, name={table!r}))
print(json.dumps({{
    "requests": design.traffic.requests,
    "findings": [
        {{"kind": str(it.kind), "facts": {{**it.facts}}, "edit": it.edit}} for it in design.findings
    ],
}}, default=str))
"""
ABOUT = ("key", "property", "query", "partition")
# tables with copies, and the queries of an entity before and after
COPIES = {
    "orders": [("ordersByRowKey", "RowKey eq '{RowKey}'", "PartitionKey eq '{RowKey}'")],
    "readings": [
        (
            "readingsByDevice",
            "Device eq '{Device}' and Time ge datetime'{Time}'",
            "PartitionKey eq '{Device}' and RowKey ge '{PartitionKey}' and Time ge datetime'{Time}'",
        )
    ],
    "people": [
        ("peopleByEmail", "Email eq '{Email}'", "PartitionKey eq '{Email}'"),
        (
            "people",
            "PartitionKey eq 'user' and Email eq '{Email}'",
            "PartitionKey eq 'user' and RowKey ge 'Email_{Email}_' and RowKey lt 'Email_{Email}_~'",
        ),
    ],
}
PATHS = list(AccessPath)


@pytest.fixture(scope="module")
def token(server: LiveServer) -> str:
    server.change_accounts("add", ACCOUNT, "--key1", server.key)
    server.manage("user", "add", "designer", "--admin")
    return server.add_token("designer", "designs")


def show(server: LiveServer, table: str) -> dict[str, Any]:
    printed = server.manage("shell", "-v", "0", "-c", SHOW.format(account=ACCOUNT, table=table))
    shown: dict[str, Any] = json.loads(printed)
    return shown


def about(finding: Mapping[str, Any]) -> tuple[str, str]:
    facts = finding["facts"]
    named = [str(facts[name]) for name in ABOUT if name in facts]
    return finding["kind"], named[0] if named else finding["edit"]["operations"][0]["partition_key"]


def edit(server: LiveServer, token: str, table: str, body: Mapping[str, Any]) -> None:
    answer = requests.post(
        f"{server.url}/ui/api/v1/accounts/{ACCOUNT}/tables/{table}/bulk-edit",
        json=body,
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
    )
    assert answer.ok, answer.text
    edited = answer.json()
    assert edited["skipped"] == 0, edited


def read(service: TableServiceClient, table: str, query: str) -> list[dict[str, Any]]:
    """Return the properties of the entities that a query finds, without the keys."""
    found = service.get_table_client(table).query_entities(query)
    keys = ("PartitionKey", "RowKey")
    return sorted(({name: it[name] for name in it if name not in keys} for it in found), key=str)


def path_of(query: str) -> int:
    return PATHS.index(plan_access(parse(query)).path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda it: it.table)
def test_findings_are_the_true_ones_and_their_edits_mend_them(
    server: LiveServer, token: str, example: Example
) -> None:
    entities = fill(example, server.url, ACCOUNT, server.key, ENTITIES)
    ask(example, server.url, ACCOUNT, server.key, entities, REQUESTS)
    wait_for(lambda: show(server, example.table)["requests"] >= REQUESTS)
    findings = show(server, example.table)["findings"]
    assert {about(it) for it in findings} == example.expected

    edits = [it["edit"] for it in findings if it["edit"]]
    copies = [it for it in edits if it["operations"][0]["op"] == "second-copy"]
    queries = [
        (copy, before.format(**entities[7]), after.format(**entities[7]))
        for copy, before, after in COPIES[example.table]
    ]
    address = server.connection_string.replace(server.account, ACCOUNT)
    with TableServiceClient.from_connection_string(address) as service:
        originals = [read(service, example.table, before) for _, before, _ in queries]
        assert all(originals)
        for body in copies:
            edit(server, token, example.table, body)
        assert [read(service, copy, after) for copy, _, after in queries] == originals
    assert [path_of(after) < path_of(before) for _, before, after in queries] == [True] * len(queries)
    for body in edits:
        if body not in copies:
            edit(server, token, example.table, body)
    after = {about(it) for it in show(server, example.table)["findings"]}
    # the requests are those of before
    assert {it for it in after if it[0] not in ("costly-query", "hot-partition")} <= example.expected
    assert {kind for kind, _ in after} & {"unpadded-numbers", "mixed-numbers", "one-partition"} == set()
