"""Each difference from Azure that the document names has a wire case, and each such case is in the document."""

import re

from tests.docs.pages import DOCS
from tests.wire import cases

DOCUMENT = (DOCS / "compatibility.md").read_text("utf-8")


def test_each_difference_has_a_wire_case():
    table = DOCUMENT.partition("| | Azure | here |\n|---|---|---|\n")[2].partition("\n\n")[0]
    named = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()]
    held = {
        re.sub(r": .*", "", case.id.removeprefix("differences: "))
        for case in cases.load()
        if case.id.startswith("differences: ")
    }
    assert len(named) == len({*named}) > 10
    assert {*named} == held
