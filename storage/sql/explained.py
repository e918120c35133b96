"""Plans that PostgreSQL explains in JSON; of a statement on several nodes, what one of them plans stands for all."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from storage.sql.statement import Result, text_at


class Explained(NamedTuple):
    """``root`` is the node of a plan at the top, and ``times`` how many nodes of a cluster run such a plan."""

    root: dict[str, Any]
    times: int = 1

    @property
    def rows(self) -> int:
        return int(self.root["Plan Rows"]) * self.times


def read(result: Result) -> Explained:
    root: dict[str, Any] = json.loads(text_at(result, 0, 0))[0]["Plan"]
    for node in nodes(root):
        # the plan of one task is shown; a node that failed has none
        job = node.get("Distributed Query", {}).get("Job")
        if job is not None:
            with suppress(LookupError, TypeError):
                return Explained(job["Tasks"][0]["Remote Plan"][0][0]["Plan"], int(job["Task Count"]))
    return Explained(root)


def nodes(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield root
    for child in root.get("Plans", ()):
        yield from nodes(child)
