"""Plans on a coordinator: the plan of one task, which stands for all."""

import json

import pytest

from storage.sql import explained

SCAN = {"Node Type": "Index Scan", "Index Name": "entity_7_pkey_102008", "Plan Rows": 30}
JOB = {
    "Task Count": 8,
    "Tasks Shown": "One of 8",
    "Tasks": [{"Node": "host=worker-1 port=5432", "Remote Plan": [[{"Plan": SCAN}]]}],
}
ON_NODES = {
    "Node Type": "Sort",
    "Plan Rows": 100000,
    "Plans": [{"Node Type": "Custom Scan", "Plan Rows": 100000, "Distributed Query": {"Job": JOB}}],
}


class Answer:
    ntuples = 1

    def __init__(self, plan):
        self.text = json.dumps([{"Plan": plan}]).encode()

    def get_value(self, row, column):
        return self.text


@pytest.mark.parametrize(("plan", "root", "rows"), [(SCAN, SCAN, 30), (ON_NODES, SCAN, 240)])
def test_rows_are_those_of_all_nodes(plan, root, rows):
    result = explained.read(Answer(plan))
    assert (result.root, result.rows) == (root, rows)
