"""The page about rehearsals: its tables are those of the code, and its programs run under rehearsals."""

import json

import pytest

from storage.rehearsal.findings import FindingKind
from storage.rehearsal.rules import EFFECTS, Parameter, When, dump_rules, read_rules
from storage.rehearsal.sets import READY
from tests.docs.pages import DOCS, blocks, rows

PAGE = DOCS / "rehearse.md"


def test_the_ready_sets() -> None:
    assert rows(PAGE, "Ready sets") == [[f"`{one.name}`", one.text] for one in READY.values()]


def describe(name: str, form: Parameter) -> str:
    if form.choices:
        return f"`{name}`: " + ", ".join(f"`{choice}`" for choice in form.choices)
    unit = form.unit and f" {form.unit}"
    return f"`{name}`: {form.least:,g} to {form.most:,g}{unit}, {form.default:,g}"


def test_the_effects_and_their_parameters() -> None:
    assert rows(PAGE, "Effects") == [
        [
            f"`{effect}`",
            form.text,
            "; ".join(describe(name, it) for name, it in form.parameters.items()) or "none",
        ]
        for effect, form in EFFECTS.items()
    ]


def test_the_conditions() -> None:
    assert [row[0] for row in rows(PAGE, "Conditions")] == [f"`{name}`" for name in When.__slots__]


def test_the_findings() -> None:
    assert [row[0] for row in rows(PAGE, "Findings")] == [f"`{kind}`" for kind in FindingKind]


@pytest.mark.parametrize("written", [json.loads(block) for block in blocks(PAGE, "json")])
def test_the_rules_shown_are_read(written: object) -> None:
    assert dump_rules(read_rules(written)) != []
