"""Completeness of the reference pages: options, variables, commands, paths of the API, metrics."""

import re

from django.urls import get_resolver
from prometheus_client import REGISTRY

import storage.runtime.prometheus  # noqa: F401  registers the metrics
from storage.management.commands import account
from storage.runtime import doctor
from storage.server import command_line, examination, options
from tests.docs.pages import DOCS, rows

OPTIONS = DOCS / "options.md"


def code_of(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_options_and_variables_with_their_defaults():
    of_serve = {code_of(row[0])[0].split()[0]: row[1] for row in rows(OPTIONS, "Options of `serve`")}
    of_environment = {code_of(row[0])[0]: row[1] for row in rows(OPTIONS, "Environment only")}
    assert of_serve.keys() == {variable.option for variable in options.VARIABLES if variable.help}
    assert of_environment.keys() == {variable.key for variable in options.VARIABLES if not variable.help}
    for variable in options.VARIABLES:
        if variable.default:
            written = of_serve[variable.option] if variable.help else of_environment[variable.key]
            assert written.strip("`") == variable.default


def test_actions_of_the_account_command():
    written = {name.split()[0] for row in rows(DOCS / "access.md", "Accounts") for name in code_of(row[0])}
    parser = account.Command().create_parser("manage.py", "account")
    actions = next(action for action in parser._actions if action.dest == "action")
    assert written == set(actions.choices)


def test_commands():
    written = [code_of(row[0])[0] for row in rows(OPTIONS, "Commands")]
    there = [name for commands in command_line.list_commands().values() for name in commands]
    assert written == [*there, "test"]


def test_parts_of_the_doctor():
    assert [code_of(row[0])[0] for row in rows(DOCS / "operations.md", "Doctor")] == [
        *examination.PARTS,
        *doctor.parts(),
    ]


def test_paths_of_the_api():
    written = {
        path.partition(" ")[::2]
        for row in rows(DOCS / "management-api.md", "Operations")
        for path in code_of(row[0])
        if " " in path
    }
    there = {
        (method.upper(), re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern)))
        for urls in ("storage.rest.urls", "console.api.urls")
        for pattern in get_resolver(urls).url_patterns
        for method in getattr(pattern.callback, "actions", {"get": ""})
        if method != "head"  # REST framework adds it with the first request
    }
    assert written == there


def test_metrics():
    written = {name for row in rows(DOCS / "operations.md", "Metrics") for name in code_of(row[0])}
    there = {
        metric.name + ("_total" if metric.type == "counter" else "")
        for metric in REGISTRY.collect()
        if metric.name.startswith("tablero_")
    }
    assert written == there
