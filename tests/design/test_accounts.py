"""Findings about tables made like people's: all that are true, and no other; and what their edits leave."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import requests

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
    # copies first, while the keys are those of the queries; others would change one entity several times
    for body in sorted(edits, key=lambda it: it["operations"][0]["op"] != "second-copy"):
        edit(server, token, example.table, body)
    after = {about(it) for it in show(server, example.table)["findings"]}
    # the requests are those of before
    assert {it for it in after if it[0] not in ("costly-query", "hot-partition")} <= example.expected
    assert {kind for kind, _ in after} & {"unpadded-numbers", "mixed-numbers", "one-partition"} == set()
