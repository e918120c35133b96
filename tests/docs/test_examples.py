"""The examples of the documents run as they are, against a server."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

import pytest
import requests
from azure.data.tables import TableServiceClient

from tests import forked
from tests.clients import programs
from tests.docs.pages import DOCS, DOCUMENTS, blocks, name_of
from tests.live_server import LiveServer
from tests.programs import used_in
from tests.waiting import wait_for

pytestmark = pytest.mark.long
API = DOCS / "management-api.md"
OPERATIONS = DOCS / "operations.md"
SNAPSHOTS = DOCS / "snapshots.md"
TESTING = DOCS / "testing.md"  # see test_testing
REHEARSE = DOCS / "rehearse.md"  # see test_rehearse
DESIGN = DOCS / "design.md"  # see test_design
TEST = """
import os
from azure.data.tables import TableServiceClient

def test_tables():
    with TableServiceClient.from_connection_string(os.environ["TABLES_CONNECTION_STRING"]) as service:
        service.create_table("people").upsert_entity({"PartitionKey": "se", "RowKey": "ada"})
        assert [table.name for table in service.list_tables()] == ["people"]
"""


def with_example(language: str) -> list[Path]:
    return [
        document
        for document in DOCUMENTS
        if document not in (TESTING, REHEARSE, DESIGN) and blocks(document, language)
    ]


def run(command: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("document", with_example("python"), ids=name_of)
def test_python(server: LiveServer, tmp_path: Path, document: Path) -> None:
    program = "\n".join(blocks(document, "python"))
    program = program.replace("UseDevelopmentStorage=true", server.connection_string)
    assert run([sys.executable, "-c", program], tmp_path)


@pytest.mark.parametrize("document", with_example("javascript"), ids=name_of)
def test_javascript(
    server: LiveServer, tmp_path: Path, sdk_folder: Path, require: Callable[[str, str], str], document: Path
) -> None:
    (tmp_path / "node_modules").symlink_to(sdk_folder / "node_modules")
    # the shortcut allows http, which another address has to be allowed
    mine = f'"{server.connection_string}", "people", {{ allowInsecureConnection: true }}'
    program = "\n".join(blocks(document, "javascript")).replace(
        '"UseDevelopmentStorage=true", "people"', mine
    )
    (tmp_path / "example.mjs").write_text(program)
    assert run([require("node", "the JavaScript SDK"), "example.mjs"], tmp_path)


CSHARP_PACKAGES = {"DurableTask.AzureStorage": "Microsoft.Azure.DurableTask.AzureStorage@2.*"}


@pytest.mark.parametrize("document", with_example("csharp"), ids=name_of)
def test_csharp(server: LiveServer, tmp_path: Path, document: Path) -> None:
    program = "\n".join(blocks(document, "csharp"))
    program = program.replace("UseDevelopmentStorage=true", server.connection_string)
    packages = [package for name, package in CSHARP_PACKAGES.items() if f"using {name};" in program]
    assert run(programs.csharp(tmp_path, program, *packages), tmp_path)


@pytest.fixture(scope="module")
def environment(scratch: Path) -> Mapping[str, str]:
    """Return the environment of a user on the server's machine, next to a server started with --data."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(scratch), "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}


@pytest.fixture
def shell(
    server: LiveServer,
    environment: Mapping[str, str],
    tmp_path: Path,
    require: Callable[[str, str], str],
) -> Callable[..., str]:
    """Return a function that runs lines of bash next to a manage.py, on the server's machine."""
    (tmp_path / "manage.py").write_text(forked.manage_py(server.data))
    bash = require("bash", "the examples for a shell")

    def run_lines(*lines: str, **variables: str) -> str:
        for name in used_in("\n".join(lines)):
            require(name, "the example")
        # not exported: the commands of manage.py know the variables of the server only
        given = [f"{name}='{value}'" for name, value in {"TABLERO_URL": server.url, **variables}.items()]
        home = {**environment, "HOME": str(tmp_path)}
        script = "\n".join([*given, *lines]).replace(
            "TABLERO_DATA=/srv/tablero ", f"TABLERO_DATA={server.data} "
        )
        return run([bash, "-euo", "pipefail", "-c", script], tmp_path, home)

    return run_lines


# the initial state of the examples: the tables of accounts, and an entity in each
BEFORE: Mapping[str, Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "docs/collaboration.md": {"shop": {"prices": ("books", "0815")}},
    "docs/consistency.md": {"shop": {}},
    "docs/deployment.md": {"shop": {}, "reports": {}},
    "docs/operations.md": {"devstoreaccount1": {"people": ("se", "ada")}},
}


@pytest.fixture
def before(server: LiveServer, shell: Callable[..., str]) -> Iterator[Callable[[Path], str]]:
    """Create the initial state of a document's examples, and return a token of an admin."""
    made: list[str] = []

    def make(document: Path) -> str:
        for account, tables in BEFORE.get(name_of(document), {}).items():
            if account != server.account:
                shell(f"python3 manage.py account add {account} --key1 {server.key}")
                made.append(account)
            text = server.connection_string.replace(server.account, account)
            with TableServiceClient.from_connection_string(text) as service:
                for table, (partition, row) in tables.items():
                    entity = {"PartitionKey": partition, "RowKey": row}
                    service.create_table_if_not_exists(table).upsert_entity(entity)
        user = "reader-of-" + document.stem
        shell(f"python3 manage.py user add {user} --admin")
        return shell(f"python3 manage.py token add {user} examples --scope manage").strip()

    yield make
    for account in made:
        shell(f"python3 manage.py account remove {account} --with-tables")


@pytest.mark.parametrize("document", with_example("sh"), ids=name_of)
def test_shell(shell: Callable[..., str], before: Callable[[Path], str], document: Path) -> None:
    elsewhere = ("pytest", "alice", "manage.py backup", "manage.py restore", "account export", "restored")
    lines = [block for block in blocks(document, "sh") if not any(word in block for word in elsewhere)]
    shell(*lines, TABLERO_TOKEN=before(document))


def output_of(document: Path, command: str) -> list[str]:
    """Return the lines that a document shows below a command, without its ellipses."""
    [block] = [block for block in blocks(document, "console") if f"$ {command}\n" in block]
    shown = block.partition(f"$ {command}\n")[2].partition("\n$ ")[0]
    return [line for line in shown.splitlines() if line.strip() != "..."]


def test_the_declaration_of_an_account_is_applied(shell: Callable[..., str], tmp_path: Path) -> None:
    page = DOCS / "infrastructure.md"
    (tmp_path / "shop.toml").write_text(blocks(page, "toml")[0])
    command = "python3 manage.py apply shop.toml"
    users = next(block for block in blocks(page, "sh") if "user add alice" in block)
    shell("python3 manage.py account remove shop --with-tables || true")  # left by another example
    try:
        said = shell(users, f"{command} --yes").splitlines()
        shown = [line for line in output_of(page, command) if "[y/N]" not in line]
        assert len(shown) > 10
        assert [line for line in shown if line not in said] == []
    finally:
        (tmp_path / "gone.toml").write_text("[accounts.shop]\nprotected = false\n")
        shell(
            "python3 manage.py apply gone.toml --yes", "python3 manage.py account remove shop --with-tables"
        )


def test_tables_are_copied_from_another_service(server: LiveServer, shell: Callable[..., str]) -> None:
    page = DOCS / "migration.md"
    block = next(block for block in blocks(page, "console") if "copy env:SOURCE" in block)
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    source = f"python3 manage.py account add planetsource --key1 {server.key}"
    shell(source)
    text = server.connection_string.replace(server.account, "planetsource")
    with TableServiceClient.from_connection_string(text) as service:
        for name in ("people", "orders"):
            service.create_table(name).create_entity({"PartitionKey": "se", "RowKey": "ada"})
    given = [
        line if not line.startswith("export SOURCE=") else f"export SOURCE='{text}'" for line in commands
    ]
    assert given != commands
    said = shell(*given)
    assert said.count("1 verified: equal") == 2
    shell("python3 manage.py account remove planets --with-tables")


def test_backup_and_restore(
    server: LiveServer, shell: Callable[..., str], scratch: Path, tmp_path: Path
) -> None:
    folder = scratch / "backup"  # not tmp_path, which the user of PostgreSQL may not enter
    folder.mkdir()
    shutil.copy(tmp_path / "manage.py", folder)
    words = ("manage.py backup backups", "manage.py restore", "account export")
    backup, restore, one_account = (
        f"cd '{folder}'\n{block}" for word in words for block in blocks(OPERATIONS, "sh") if word in block
    )
    with TableServiceClient.from_connection_string(server.connection_string) as service:
        entity = {"PartitionKey": "se", "RowKey": "ada"}
        service.create_table_if_not_exists("backup").upsert_entity(entity)
    assert "passed in" in shell("umask 022", backup)
    [made] = (folder / "backups").glob("2*")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (made, *made.rglob("*"))} == {0o600, 0o700}
    shell(restore)
    export = f"python3 manage.py export {server.account}/backup - --format ndjson"
    assert '"RowKey":"ada"' in shell(f"TABLERO_DATA='{folder}/restored' {export}").replace(" ", "")
    assert "everything fits" in shell(one_account)
    shell("python3 manage.py account remove restored --with-tables")


def test_an_account_per_branch(server: LiveServer, shell: Callable[..., str], tmp_path: Path) -> None:
    """Two runs of CI, then the merge of the branch."""
    lines = next(block for block in blocks(API, "sh") if "pytest" in block).splitlines()
    *lines, delete = [line for line in lines if line]
    assert len(lines) < 10
    (tmp_path / "test_tables.py").write_text(TEST)
    shell("python3 manage.py user add ci-robot --admin")
    token = shell("python3 manage.py token add ci-robot branches --scope manage").strip()
    given = {"BRANCH": "fix/the-thing_2", "TABLERO_TOKEN": token}

    def found() -> list[tuple[dict[str, str], str]]:
        headers = {"Authorization": f"Bearer {token}"}
        answer = requests.get(f"{server.url}/ui/api/v1/accounts?label=branch", headers=headers, timeout=60)
        return [(account["labels"], account["state"]) for account in answer.json()["items"]]

    assert "1 passed" in shell(*lines, **given)
    assert found() == [({"branch": "fix/the-thing_2"}, "active")]
    shell(*(line for line in lines if "pytest" not in line), delete, **given)
    assert found() == []


BRANCH_TEST = """
import os
from azure.data.tables import TableServiceClient

def test_data():
    with TableServiceClient.from_connection_string(os.environ["TABLES_CONNECTION_STRING"]) as service:
        people = service.get_table_client("people")
        assert [it["RowKey"] for it in people.list_entities()] == ["ada"]
        people.delete_entity("se", "ada")
        people.create_entity({"PartitionKey": "se", "RowKey": "bob"})
"""


def test_a_branch_with_data_per_pull_request(
    server: LiveServer, shell: Callable[..., str], tmp_path: Path
) -> None:
    """Two runs of CI with the same data, then the merge."""
    lines = next(block for block in blocks(SNAPSHOTS, "sh") if "pytest" in block).splitlines()
    *lines, delete = [line for line in lines if line]
    assert len(lines) < 10
    (tmp_path / "test_data.py").write_text(BRANCH_TEST)
    shell("python3 manage.py user add pr-robot --admin", "python3 manage.py account add baseline")
    token = shell("python3 manage.py token add pr-robot branches --scope manage").strip()
    headers = {"Authorization": f"Bearer {token}"}
    api = f"{server.url}/ui/api/v1/accounts"
    text = requests.get(
        f"{api}/baseline/connection-string",
        headers={**headers, "Accept": "text/plain"},
        timeout=60,
    ).text
    with TableServiceClient.from_connection_string(text) as service:
        service.create_table("people").create_entity({"PartitionKey": "se", "RowKey": "ada"})
    shell("python3 manage.py snapshot take baseline ci-baseline")
    given = {"BRANCH": "feature/refunds", "SOURCE": "baseline", "TABLERO_TOKEN": token}

    for _ in range(2):
        assert "1 passed" in shell(*lines, **given)
    [branch] = requests.get(f"{api}/baseline/branches", headers=headers, timeout=60).json()["items"]
    assert (branch["snapshot"], branch["state"]) == ("ci-baseline", "active")
    account = f"account={branch['name']}"
    [promotion] = blocks(SNAPSHOTS, "bash")
    setup = lines[0]  # the variables
    assert '"bob"' in shell(setup, account, *promotion.splitlines(), **given)
    with TableServiceClient.from_connection_string(text) as service:
        people = service.get_table_client("people")
        assert [it["RowKey"] for it in people.list_entities()] == ["bob"]
    shell(*(line for line in lines if "pytest" not in line), delete, **given)
    assert requests.get(f"{api}/baseline/branches", headers=headers, timeout=60).json()["items"] == []


CONSUMERS = {
    "python": ("python consumer.py", [sys.executable, "consumer.py"]),
    "javascript": ("javascript consumer.mjs", ["node", "consumer.mjs"]),
}


@pytest.mark.parametrize("language", CONSUMERS)
def test_consumers_of_the_change_feed_survive_restarts(
    server: LiveServer,
    shell: Callable[..., str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    require: Callable[[str, str], str],
    language: str,
) -> None:
    info, command = CONSUMERS[language]
    if language == "javascript":
        command = [require("node", "the JavaScript SDK"), *command[1:]]
        (tmp_path / "node_modules").symlink_to(request.getfixturevalue("sdk_folder") / "node_modules")
    [program] = blocks(DOCS / "change-feed.md", info)
    (tmp_path / command[1]).write_text(program)
    shell(f"python3 manage.py user add {language} --admin")
    token = shell(f"python3 manage.py token add {language} feed --scope read").strip()
    given = {"TABLERO_URL": server.url, "TABLERO_TOKEN": token}
    given |= {"TABLES_CONNECTION_STRING": server.connection_string}

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **given})

    def copied() -> dict[str, int]:
        if language == "javascript":
            copy = json.loads((tmp_path / "copy.json").read_text())
            return {json.loads(key)[1]: entity["Count"] for key, entity in copy["entities"].items()}
        with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
            rows = copy.execute("SELECT rk, entity FROM entities").fetchall()
        return {row: json.loads(entity)["Count"] for row, entity in rows}

    def wait_for_copy(expected: dict[str, int]) -> None:
        def is_copied() -> bool:
            with suppress(OSError, sqlite3.OperationalError):
                return copied() == expected
            return False

        wait_for(is_copied)

    def put(row: str, count: int) -> None:
        table.upsert_entity({"PartitionKey": "shop", "RowKey": row, "Count": count})

    with TableServiceClient.from_connection_string(server.connection_string) as service:
        service.delete_table("inventory")
        table = service.create_table("inventory")
        put("bolts", 1)
        consumer = start()
        try:
            wait_for_copy({"bolts": 1})
            put("bolts", 2)
            put("nuts", 3)
            wait_for_copy({"bolts": 2, "nuts": 3})
            consumer.kill()
            consumer.wait()
            table.delete_entity("shop", "nuts")
            put("nails", 4)
            consumer = start()
            wait_for_copy({"bolts": 2, "nails": 4})
            # the token expires: the consumer starts over
            for days in ("0", "7"):
                shell(f"python3 manage.py account history {server.account} {days}")
                put("nails", 4 + int(days))
            wait_for_copy({"bolts": 2, "nails": 11})
        finally:
            consumer.kill()
            consumer.wait()
        table.close()
