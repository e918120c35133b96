"""Servers without optional subjects: nothing of these is imported, and everything else works."""

import re
import subprocess
import sys
from importlib import import_module

import pytest

from storage.core import registry
from storage.server import options
from storage.server.refusal import Refusal
from storage.server.workers import environment
from tests.first_sign_in import sign_in_first
from tests.live_server import ACCOUNT, ROOT, clean_environment, start_server
from tests.seeds import seeded

STAYS = {"backups": r"storage\.backups\.(archive|last_backup)"}  # an upgrade makes a backup itself
OPTIONAL = registry.optional_names()
EVERYTHING = """
import sys
import django
django.setup()
from django.core.management import get_commands, load_command_class
from django.urls import get_resolver, reverse
from django.utils.module_loading import import_string
import console.asgi, storage.protocol.table_service
from console.help import contents
from console.site import static_files
from console.site.commands import commands
from console.site.layout import navigation
from storage.core import registry
from storage.core.subject import Place
from storage.rest.documentation import document
from storage.runtime import doctor, job_runner, periodic
from storage.server import command_line

def names(patterns, prefix=""):
    for pattern in patterns:
        if hasattr(pattern, "url_patterns"):
            yield from names(pattern.url_patterns, f"{pattern.namespace}:" if pattern.namespace else "")
        else:
            yield f"{prefix}{pattern.name}"

for path in (*registry.tidying().values(), *registry.daily(), *(work.do for work in registry.periodic())):
    import_string(path)
for kind in registry.notice_kinds().values():
    import_string(kind.condition.find)
for verb in registry.verbs().values():
    undo = registry.undo_of(verb)
    assert undo is None or import_string(undo.do or undo.request)
list(registry.key_followers())
given = {Place.ACCOUNT: 1, Place.ACCOUNT_SEARCH: 1, Place.TABLE: 2, Place.TABLE_SEARCH: 2}
for place in Place:
    for item in navigation(place):
        assert reverse(item.url, args=[*["acme", "people"][:given.get(place, 0)], *item.arguments])
for name in command_line.own_commands():
    load_command_class(get_commands()[name], name)
print("names", *names(get_resolver().url_patterns))
print("paths", *document()["paths"])
print("commands", *command_line.own_commands())
print("keys", *(it.name for it in commands()))
for file in static_files.files().values():
    assert file.content
print("static", *static_files.files())
print("sources", *(path.relative_to(static_files.CONSOLE) for paths in static_files.sources().values()
    for path in paths if static_files.CONSOLE in path.parents))
print("documents", *contents.entries())
print("verbs", *registry.verbs())
print("modules", *sys.modules)
"""


def run_without(names: str) -> dict[str, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", EVERYTHING],
        cwd=ROOT,
        env={**environment(), "DJANGO_SETTINGS_MODULE": "console.settings", "TABLERO_WITHOUT": names},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {
        name: set(rest.split()) for name, _, rest in (it.partition(" ") for it in done.stdout.splitlines())
    }


@pytest.fixture(scope="module")
def everything():
    return run_without("")


@pytest.mark.long
@pytest.mark.parametrize("names", [OPTIONAL[::2], OPTIONAL[1::2]], ids=["even", "odd"])
def test_nothing_of_optional_subjects_is_left_and_the_others_need_none(names, everything):
    """Every second one at once; that no module imports one of another room, tests/test_rooms.py sees in the code."""
    subjects = [subject for subject in registry.subjects() if subject.name in names]
    others = [subject for subject in registry.subjects() if subject.name not in names]
    rest = run_without(",".join(names))
    left = {part: everything[part] - rest[part] for part in everything}
    room = re.compile(rf"(storage|console)\.({'|'.join(names)})\.(?!subject$)[\w.]+").fullmatch
    stays = re.compile("|".join(STAYS.values())).fullmatch
    assert [module for module in sorted(rest["modules"]) if room(module) and not stays(module)] == []
    assert left["commands"] == {command.name for subject in subjects for command in subject.commands}
    assert left["keys"] == {key.name for subject in subjects for key in subject.keys}
    assert left["names"] == {name for subject in subjects for name in names_of(subject)}
    assert left["paths"]
    kept = {document for subject in others for document in subject.documents}
    assert left["documents"] == {document for it in subjects for document in it.documents} - kept
    files = {file for file in everything["sources"] if file.partition("/")[0] in names}
    assert left["sources"] == files
    assert left["static"] == {f"console/{file}" for file in files if not file.endswith(".css")}
    assert left["verbs"] == set()  # stored ones keep their sentences


def names_of(subject):
    for path in subject.urls:
        module = import_module(path)
        yield from (f"{module.app_name}:{pattern.name}" for pattern in module.urlpatterns)
    if subject.api:
        yield from (pattern.name for pattern in import_module(subject.api).urlpatterns)


@pytest.mark.long
def test_a_server_without_any_of_them(scratch, tmp_path):
    data = seeded(scratch / "without")
    with start_server(data, env={"TABLERO_WITHOUT": ",".join(OPTIONAL)}) as live:
        wire = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-n", "0", "-q", "tests/wire/test_wire.py"),
                *("-k", "insert_entity or point_get or update or batch_query or query_entities or tokens"),
            ],
            cwd=ROOT,
            env={**clean_environment(), "TABLE_ENDPOINT": live.endpoint},
            capture_output=True,
            text=True,
            check=False,
        )
        assert wire.returncode == 0, wire.stdout
        assert re.search(r"\b[1-9]\d+ passed", wire.stdout)
        told = live.manage("user", "add", "ada", "--admin")
        session, _password = sign_in_first(live.url, "ada", told.partition("password=")[2].strip())
        file = tmp_path / "people.csv"
        file.write_text("PartitionKey,RowKey\na,b\n")
        live.manage("import", f"{ACCOUNT}/people", str(file), "--create")
        check_pages(live, session)


def check_pages(live, session):
    page = session.get(f"{live.url}/ui/a/{ACCOUNT}/t/people/")
    assert page.status_code == 200
    assert "link.copy" not in page.text
    assert "comments/" not in page.text
    assert "t/people/bulk/" not in page.text
    assert session.get(f"{live.url}/ui/a/{ACCOUNT}/t/people/bulk/").status_code == 404
    assert "/copy/" not in session.get(f"{live.url}/ui/a/{ACCOUNT}/").text
    assert session.get(f"{live.url}/ui/a/{ACCOUNT}/t/people/entity/?pk=a&rk=b").status_code == 200
    assert session.get(f"{live.url}/ui/a/{ACCOUNT}/t/people/comments/").status_code == 404
    assert session.get(f"{live.url}/ui/links/new/").status_code == 404
    home = session.get(f"{live.url}/ui/")
    assert home.status_code == 200 and "backup" not in home.text
    assert session.get(f"{live.url}/ui/backups/").status_code == 404
    document = session.get(f"{live.url}/ui/api/v1/schema").json()
    assert "/ui/api/v1/accounts" in document["paths"]
    assert not any(re.search("manifest|comments|bulk|copy-from|replicas", path) for path in document["paths"])
    tags = {tag["name"] for tag in document["tags"]}
    assert tags.isdisjoint({"Backups", "Bulk edit", "Comments", "Manifests", "Replicas"}) and "Tables" in tags
    assert session.get(f"{live.url}/ui/api/docs/").status_code == 200


@pytest.mark.parametrize("name", OPTIONAL)
def test_options_of_what_is_left_out_are_refused(name):
    for option, subject in registry.options_of({name}).items():
        assert options.PREFIX + option in options.KEYS
        with pytest.raises(
            Refusal, match=f"TABLERO_{option} needs {subject}, which TABLERO_WITHOUT leaves out"
        ):
            options.read({"TABLERO_WITHOUT": name, f"TABLERO_{option}": "1"})


def test_names_are_checked_at_start():
    with pytest.raises(
        Refusal, match=r"^TABLERO_WITHOUT has 'link' \(did you mean links\?\); these can be left out: "
    ):
        options.read_without({"TABLERO_WITHOUT": "manifest,link"})
