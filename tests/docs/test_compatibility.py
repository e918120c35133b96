"""Each difference from Azure that the document names has a wire case, and each such case is in the document.

So is each rule of Azure that friendly accounts do not insist on.
"""

import re

from storage.domain.requests.strictness import RULES
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


def test_each_rule_of_azure_is_in_the_document():
    table = DOCUMENT.partition("| rule | Azure answers | known from |\n|---|---|---|\n")[2].partition("\n\n")[
        0
    ]
    rows = [row.removeprefix("| ").removesuffix(" |").split(" | ") for row in table.splitlines()]
    written = [(rule, answer, re.findall(r"\]\(([^)]*)\)", sources)) for rule, answer, sources in rows]
    assert written == [
        (
            facts.sentence,
            f"{facts.error.status} `{facts.error.__name__}`: {re.sub(r'{[0-9]}', '…', facts.message)}",
            list(facts.sources),
        )
        for facts in RULES.values()
    ]
