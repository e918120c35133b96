"""The code that the console shows for an entity does what it says, whatever the entity is called and holds."""

import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import (
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    generate_table_sas,
)

from console import snippets
from console.snippets import Query, Snippet, Target
from storage.accounts.connection_strings import ConnectionFormat, connection_string, write_connection
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.access_plan import plan_access
from storage.domain.filters.parser import parse
from storage.domain.values.edm import Edm, EdmValue
from tests.clients import programs
from tests.live_server import LiveServer

TABLE = "snippets"
RUN_TIMEOUT = 180
KEYS = [EntityKey("", ""), EntityKey('it\'s "%2F" $HOME `x`', "é 🦊 \u202e <b> & + '' {}")]
PROPERTIES = {
    "Text": EdmValue(Edm.STRING, "'\"\\%s ${x} `x` \n\r\t \x00 \u2028 🦊"),
    "Empty": EdmValue(Edm.STRING, ""),
    "Yes": EdmValue(Edm.BOOLEAN, True),
    "Small": EdmValue(Edm.INT32, -7),
    "Big": EdmValue(Edm.INT64, 2**63 - 1),
    "Zero": EdmValue(Edm.DOUBLE, -0.0),
    "One": EdmValue(Edm.DOUBLE, 1.0),
    "Nan": EdmValue(Edm.DOUBLE, math.nan),
    "Less": EdmValue(Edm.DOUBLE, -math.inf),
    "Since": EdmValue(Edm.DATETIME, 17_424_253_151_234_567),
    "Id": EdmValue(Edm.GUID, "00000000-0000-0000-0000-00000000000a"),
    "Photo": EdmValue(Edm.BINARY, b"\x00\xff"),
}
GET, INSERT, MERGE, DELETE = range(4)


@pytest.fixture(scope="module")
def table(server: LiveServer) -> Iterator[TableClient]:
    with TableServiceClient.from_connection_string(server.connection_string) as service:
        service.create_table_if_not_exists(TABLE)
        with closing(service.get_table_client(TABLE)) as found:
            yield found


@pytest.fixture
def run_python(server: LiveServer) -> Callable[[Snippet], str]:
    def run(snippet: Snippet, **more: str) -> str:
        return finished([sys.executable, "-c", snippet.code], server, **more)

    return run


@pytest.fixture
def run_javascript(
    server: LiveServer, sdk_folder: Path, require: Callable[[str, str], str], tmp_path: Path
) -> Callable[[Snippet], str]:
    (tmp_path / "node_modules").symlink_to(sdk_folder / "node_modules")

    def run(snippet: Snippet, **more: str) -> str:
        (tmp_path / "snippet.mjs").write_text(snippet.code)
        return finished(
            [require("node", "the JavaScript SDK"), str(tmp_path / "snippet.mjs")], server, **more
        )

    return run


@pytest.fixture
def run_curl(server: LiveServer, require: Callable[[str, str], str]) -> Callable[[Snippet], str]:
    require("curl", "the snippets of curl")
    token = token_of(server)

    def run(snippet: Snippet, **more: str) -> str:
        # several at once: one of them may not be there
        fail = "" if "--parallel" in snippet.code else " --fail-with-body"
        code = snippet.code.replace("curl ", f"curl --silent --show-error{fail} ", 1)
        command = [require("bash", "the snippets of curl"), "-c", code]
        return finished(command, server, **{"TABLES_SAS": token, **more})

    return run


@pytest.fixture
def run_csharp(server: LiveServer, tmp_path: Path) -> Callable[[Snippet], str]:
    def run(snippet: Snippet, **more: str) -> str:
        command = programs.csharp(tmp_path, snippet.code)
        return finished(command, server, **programs.csharp_environment(), **more)

    return run


@pytest.fixture
def run_go(server: LiveServer, tmp_path: Path) -> Callable[[Snippet], str]:
    def run(snippet: Snippet, **more: str) -> str:
        return finished(programs.go(tmp_path, snippet.code), server, **programs.go_environment(), **more)

    return run


def token_of(server: LiveServer) -> str:
    permission = TableSasPermissions(read=True, add=True, update=True, delete=True)
    credential = AzureNamedKeyCredential(server.account, server.key)
    expiry = datetime.now(UTC) + timedelta(hours=1)
    return generate_table_sas(credential, TABLE, permission=permission, expiry=expiry)


def finished(command: list[str], server: LiveServer, **more: str) -> str:
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "TABLES_ACCOUNT_KEY": server.key,
        "PYTHONUTF8": "1",
        **more,
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout


RUN = ["python", "javascript", "csharp", "go", "curl"]


@pytest.mark.long
@pytest.mark.parametrize("language", RUN)
@pytest.mark.parametrize("key", KEYS, ids=["empty", "hostile"])
def test_runs(request, server, table, language, key):
    run = request.getfixturevalue(f"run_{language}")
    target = Target(server.endpoint, server.account, TABLE)
    entity = Entity(key, PROPERTIES)
    written = snippets.LANGUAGES[language].write(target, entity)
    merged = snippets.LANGUAGES[language].write(target, Entity(key, {"More": EdmValue(Edm.INT32, 1)}))

    if language == "go" and not all(key):
        assert "this SDK refuses an empty PartitionKey" in written[GET].code
        return
    run(written[INSERT])
    inserted = dict(table.get_entity(*key))
    shown = run(written[GET])
    run(merged[MERGE])
    both = dict(table.get_entity(*key))
    run(written[DELETE])

    assert "9223372036854775807" in shown
    check_same(inserted)
    assert both.pop("More") == 1
    check_same(both)
    with pytest.raises(ResourceNotFoundError):
        table.get_entity(*key)


def check_same(entity):
    """Check that the SDK reads the values that the snippet was written for."""
    assert entity["Text"] == PROPERTIES["Text"].value
    assert entity["Empty"] == ""
    assert (entity["Yes"], entity["Small"], entity["Big"].value) == (True, -7, 2**63 - 1)
    assert math.copysign(1, entity["Zero"]) == -1
    assert isinstance(entity["One"], float)
    assert math.isnan(entity["Nan"])
    assert entity["Less"] == -math.inf
    assert entity["Since"].tables_service_value == "2025-03-19T23:01:55.1234567Z"
    assert str(entity["Id"]) == PROPERTIES["Id"].value
    assert entity["Photo"] == b"\x00\xff"


def test_the_azure_cli_gets_every_word_whole(require):
    """The command's arguments are checked without the Azure CLI, which is too large to install for this."""
    target = Target("http://127.0.0.1/acme", "acme", TABLE)
    text = 'it\'s "%2F" $HOME `x` \\ \n \u202e 🦊'
    values = {
        "Text": EdmValue(Edm.STRING, text),
        "Big": EdmValue(Edm.INT64, 2**63 - 1),
        "Bad": PROPERTIES["Text"],
    }
    written = snippets.LANGUAGES["az"].write(target, Entity(KEYS[1], values))

    result = words(require, written[GET])
    assert result[result.index("--partition-key") + 1] == KEYS[1].partition_key
    assert result[result.index("--row-key") + 1] == KEYS[1].row_key
    result = words(require, written[INSERT])

    assert result[result.index("--entity") + 1 :] == [
        f"PartitionKey={KEYS[1].partition_key}",
        f"RowKey={KEYS[1].row_key}",
        f"Text={text}",
        "Big=9223372036854775807",
        "Big@odata.type=Edm.Int64",
    ]
    assert "# Bad cannot be passed on a command line" in written[INSERT].code


def words(require, snippet):
    code = f"az() {{ printf '%s\\0' \"$@\"; }}\n{snippet.code}"
    command = [require("bash", "the snippets of the Azure CLI"), "-c", code]
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=RUN_TIMEOUT)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("language", list(snippets.LANGUAGES))
@pytest.mark.parametrize("key", KEYS, ids=["empty", "hostile"])
def test_every_language_has_every_operation(language, key):
    target = Target("http://127.0.0.1/acme", "acme", TABLE)

    result = snippets.LANGUAGES[language].write(target, Entity(key, PROPERTIES))

    assert [snippet.title for snippet in result] == [
        "Get Entity",
        "Insert Entity",
        "Merge Entity",
        "Delete Entity",
    ]
    assert not any("\u202e" in snippet.code or "\x00" in snippet.code for snippet in result)


TEXT = 'it\'s "%2F" $HOME `x` ${y} \\ @p0 ( ) 🦊'
ASKED = {
    # all types that a filter has; a text that breaks in every language in another way; parentheses
    "filter": (
        "PartitionKey eq 'asked' and (Text eq '{}' or Big eq 9223372036854775807L) and not (Small gt 4)"
        " and Since ge datetime'2020-01-01T00:00:00.1234567Z' and Yes eq true and Half lt 1.5"
        " and Id eq guid'00000000-0000-0000-0000-00000000000a' and Photo eq X'00ff'"
    ).format(TEXT.replace("'", "''")),
    "all": "",
    "point": "PartitionKey eq 'asked' and RowKey eq 'it''s 3'",
    "points": "PartitionKey eq 'asked' and (RowKey eq 'it''s 3' or RowKey eq 'none' or RowKey eq '5')",
}
FOUND = {
    "filter": {"0", "1", "2", "it's 3", "4"},
    "all": {"0", "1", "2", "it's 3", "4", "5", "6"},
    "point": {"it's 3"},
    "points": {"it's 3", "5"},
}


@pytest.fixture(scope="module")
def asked(server: LiveServer) -> Iterator[None]:
    with TableServiceClient.from_connection_string(server.connection_string) as service:
        result = service.create_table_if_not_exists("asked")
        rows = ["0", "1", "2", "it's 3", "4", "5", "6"]
        result.submit_transaction(
            [
                (
                    "upsert",
                    {
                        "PartitionKey": "asked",
                        "RowKey": row,
                        "Text": TEXT,
                        "Big": (1, "Edm.Int64"),
                        "Small": number,
                        "Since": datetime(2024, 1, 1, tzinfo=UTC),
                        "Yes": True,
                        "Half": 0.5,
                        "Id": UUID(int=10),
                        "Photo": b"\x00\xff",
                    },
                )
                for number, row in enumerate(rows)
            ]
        )
        yield
        service.delete_table("asked")


@pytest.mark.long
@pytest.mark.parametrize("language", RUN)
def test_q7_queries_return_the_same_keys(request, server, asked, language):
    """One program of each kind runs per language, all of them in one process where the language lets them."""
    run = request.getfixturevalue(f"run_{language}")
    write = snippets.LANGUAGES[language].write_query
    where = {"endpoint": server.endpoint, "account": server.account, "table": "asked"}
    token = table_token(server, "asked")
    for kind, text in ASKED.items():
        root = parse(text)
        query = Query(root, ("RowKey", "Small"), top=2 if language != "curl" else 50)
        if kind.startswith("point"):
            query = replace(query, keys=plan_access(root).point_keys)
        # the token of the environment is one of another table; the one in the code opens this one
        target = Target(**where, token=token if language == "curl" or kind == "points" else "")
        assert keys_in(run(Snippet("", write(target, query)))) == FOUND[kind], kind


def table_token(server: LiveServer, table: str) -> str:
    credential = AzureNamedKeyCredential(server.account, server.key)
    expiry = datetime.now(UTC) + timedelta(hours=1)
    return generate_table_sas(credential, table, permission=TableSasPermissions(read=True), expiry=expiry)


def keys_in(shown: str) -> set[str]:
    """Return the row keys of entities as Python, JavaScript, C# and JSON print them."""
    result = re.findall(r"""["']?[Rr]owKey["']?: ?("[^"]*"|'[^']*')|\[RowKey, ([^\]]*)\]""", shown)
    return {quoted[1:-1] or plain for quoted, plain in result}


# the languages whose name the connection page also shows as a format
@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "javascript", "csharp", "go"])
def test_the_program_of_the_connection_page_runs(request, server, language):
    run = request.getfixturevalue(f"run_{language}")
    account = f"samples{language}"
    server.change_accounts("add", account, "--key1", server.key)
    text = connection_string(account, f"{server.url}/{account}", server.key)
    assert "Ada Lovelace" in run(Snippet("", write_connection(ConnectionFormat(language), text)))


@pytest.mark.parametrize("language", list(snippets.LANGUAGES))
@pytest.mark.parametrize("kind", list(ASKED))
def test_queries_escape_invisible_and_breaking_characters(language, kind):
    root = parse(ASKED[kind])
    target = Target("http://127.0.0.1/acme", "acme", "asked")
    query = Query(root, ("Name", "Größe"), keys=plan_access(root).point_keys)
    code = snippets.LANGUAGES[language].write_query(target, query)
    assert "\u202e" not in code
    with_token = snippets.LANGUAGES[language].write_query(replace(target, token="sv=1&sig=a%2Bb"), query)
    assert "sv=1&sig=a%2Bb" in with_token
    assert "TABLES_" not in with_token
    assert "AZURE_STORAGE_CONNECTION_STRING" not in with_token


def test_the_azure_cli_gets_the_filter_whole(require):
    root = parse(ASKED["filter"])
    target = Target("http://127.0.0.1/acme", "acme", "asked")
    code = snippets.LANGUAGES["az"].write_query(target, Query(root, ("A", "B"), top=7))
    result = words(require, Snippet("", code))
    assert parse(result[result.index("--filter") + 1]) == root
    assert result[result.index("--num-results") + 1] == "7"
    assert result[result.index("--select") + 1 :] == ["A", "B"]
