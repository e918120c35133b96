"""Query plans from EXPLAIN in JSON; on a cluster, one node's plan stands for all nodes."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from storage.core.relation_forms import Extension
from storage.sql.forms import EXTENSIONS
from storage.sql.statement import Result, text_at


class Explained(NamedTuple):
    """Query plan: ``root`` is its top node, and ``times`` the number of cluster nodes that run it."""

    root: dict[str, Any]
    times: int = 1

    @property
    def rows(self) -> int:
        return int(self.root["Plan Rows"]) * self.times


def read(result: Result) -> Explained:
    root: dict[str, Any] = json.loads(text_at(result, 0, 0))[0]["Plan"]
    for node in nodes(root):
        if node.get("Node Type") == "Custom Scan":
            for extension in EXTENSIONS:
                if (plan := _remote_plan(extension, node)) is not None:
                    return plan
    return Explained(root)


def _remote_plan(extension: Extension, node: dict[str, Any]) -> Explained | None:
    """Return the plan that an extension reports for another server; None without one."""
    plan: Any = node
    try:
        for step in extension.remote_plan:
            plan = plan[step]
        count: Any = node
        for step in extension.remote_count:
            count = count[step]
        return Explained(plan, int(count))
    except (LookupError, TypeError):  # a node that failed has none
        return None


def nodes(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield root
    for child in root.get("Plans", ()):
        yield from nodes(child)
