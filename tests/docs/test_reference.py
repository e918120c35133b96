"""Completeness of the reference pages: options, variables, commands, paths of the API, metrics."""

import re

from django.urls import get_resolver
from prometheus_client import REGISTRY

import storage.runtime.prometheus  # noqa: F401  registers the metrics
from storage.core import registry
from storage.core.quotas import QUOTAS
from storage.management.commands import account
from storage.notices.formats import WebhookFormat
from storage.runtime import doctor
from storage.server import command_line, examination, options
from tests.docs.pages import DOCS, rows

OPTIONS = DOCS / "options.md"


def code_of(cell):
    return re.findall(r"`([^`]+)`", cell)


def check_names(page, title, written, existing):
    """Check that a table of a page has the names of all that exists, and no others."""
    missing, others = set(existing) - set(written), set(written) - set(existing)
    assert not missing, f"docs/{page}, {title}: add {sorted(missing)}"
    assert not others, f"docs/{page}, {title}: remove {sorted(others)}, which do not exist"


def test_options_and_variables_with_their_defaults():
    of_serve = {code_of(row[0])[0].split()[0]: row[1] for row in rows(OPTIONS, "Options of `serve`")}
    of_environment = {code_of(row[0])[0]: row[1] for row in rows(OPTIONS, "Environment only")}
    in_serve = {variable.option for variable in options.VARIABLES if variable.help}
    check_names("options.md", "Options of `serve`", of_serve, in_serve)
    others = {variable.key for variable in options.VARIABLES if not variable.help}
    check_names("options.md", "Environment only", of_environment, others)
    for variable in options.VARIABLES:
        if variable.default:
            written = of_serve[variable.option] if variable.help else of_environment[variable.key]
            assert written.strip("`") == variable.default


def test_quotas():
    table = rows(DOCS / "operations.md", "Quotas")
    written = {code_of(row[3])[0]: int(row[2].replace(",", "")) for row in table}
    defaults = {f"{options.PREFIX}{quota.option}": quota.default for quota in QUOTAS}
    check_names("operations.md", "Quotas", written, defaults)
    assert written == defaults


def test_actions_of_the_account_command():
    written = {name.split()[0] for row in rows(DOCS / "access.md", "Accounts") for name in code_of(row[0])}
    parser = account.Command().create_parser("manage.py", "account")
    actions = next(action for action in parser._actions if action.dest == "action")
    check_names("access.md", "Accounts", written, actions.choices)


def test_commands():
    written = [code_of(row[0])[0] for row in rows(OPTIONS, "Commands")]
    existing = [name for commands in command_line.list_commands().values() for name in commands]
    check_names("options.md", "Commands", written, [*existing, "test"])
    assert written == [*existing, "test"], (
        "docs/options.md, Commands: write them in the order of tablero help"
    )


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
    existing = {
        (method.upper(), re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern)))
        for urls in ("storage.rest.urls", "console.api.urls")
        for pattern in get_resolver(urls).url_patterns
        for method in getattr(pattern.callback, "actions", {"get": ""})
        if method != "head"  # REST framework adds it with the first request
    }
    check_names("management-api.md", "Operations", written, existing)


def test_metrics():
    written = {name for row in rows(DOCS / "operations.md", "Metrics") for name in code_of(row[0])}
    existing = {
        metric.name + ("_total" if metric.type == "counter" else "")
        for metric in REGISTRY.collect()
        if metric.name.startswith("tablero_")
    }
    check_names("operations.md", "Metrics", written, existing)


def test_kinds_of_notices():
    written = {kind for row in rows(DOCS / "notices.md", "Kinds") for kind in code_of(row[0])}
    check_names("notices.md", "Kinds", written, registry.notice_kinds())


def test_formats_of_webhooks():
    written = [code_of(row[0])[0] for row in rows(DOCS / "notices.md", "Webhooks")]
    check_names("notices.md", "Webhooks", written, WebhookFormat)
