"""The code that the console shows for an entity does what it says, whatever the entity is called and holds."""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

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
from console.snippets import Place, Snippet
from storage.domain.edm import Edm, EdmValue
from storage.domain.entity import Entity, EntityKey
from tests.live_server import LiveServer

TABLE = "snippets"
RUN_TIMEOUT = 60
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
    def run(snippet: Snippet) -> str:
        return finished([sys.executable, "-c", snippet.code], server)

    return run


@pytest.fixture
def run_javascript(
    server: LiveServer, sdk_folder: Path, require: Callable[[str, str], str], tmp_path: Path
) -> Callable[[Snippet], str]:
    (tmp_path / "node_modules").symlink_to(sdk_folder / "node_modules")

    def run(snippet: Snippet) -> str:
        (tmp_path / "snippet.mjs").write_text(snippet.code)
        return finished([require("node", "the JavaScript SDK"), str(tmp_path / "snippet.mjs")], server)

    return run


@pytest.fixture
def run_curl(server: LiveServer, require: Callable[[str, str], str]) -> Callable[[Snippet], str]:
    require("curl", "the snippets of curl")
    permission = TableSasPermissions(read=True, add=True, update=True, delete=True)
    credential = AzureNamedKeyCredential(server.account, server.key)
    token = generate_table_sas(
        credential, TABLE, permission=permission, expiry=datetime.now(UTC) + timedelta(hours=1)
    )

    def run(snippet: Snippet) -> str:
        code = snippet.code.replace("curl ", "curl --silent --show-error --fail-with-body ", 1)
        return finished([require("bash", "the snippets of curl"), "-c", code], server, TABLES_SAS=token)

    return run


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


@pytest.mark.parametrize("language", ["python", "javascript", "curl"])
@pytest.mark.parametrize("key", KEYS, ids=["empty", "hostile"])
def test_runs(request, server, table, language, key):
    run = request.getfixturevalue(f"run_{language}")
    place = Place(server.endpoint, server.account, TABLE)
    entity = Entity(key, PROPERTIES)
    written = snippets.LANGUAGES[language].write(place, entity)
    merged = snippets.LANGUAGES[language].write(place, Entity(key, {"More": EdmValue(Edm.INT32, 1)}))

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


def check_same(found):
    """What the SDK reads is what the snippet was written for."""
    assert found["Text"] == PROPERTIES["Text"].value
    assert found["Empty"] == ""
    assert (found["Yes"], found["Small"], found["Big"].value) == (True, -7, 2**63 - 1)
    assert math.copysign(1, found["Zero"]) == -1
    assert isinstance(found["One"], float)
    assert math.isnan(found["Nan"])
    assert found["Less"] == -math.inf
    assert found["Since"].tables_service_value == "2025-03-19T23:01:55.1234567Z"
    assert str(found["Id"]) == PROPERTIES["Id"].value
    assert found["Photo"] == b"\x00\xff"


def test_the_azure_cli_gets_every_word_whole(require):
    """What it would be called with; itself it is too much to install for this."""
    place = Place("http://127.0.0.1/acme", "acme", TABLE)
    text = 'it\'s "%2F" $HOME `x` \\ \n \u202e 🦊'
    values = {
        "Text": EdmValue(Edm.STRING, text),
        "Big": EdmValue(Edm.INT64, 2**63 - 1),
        "Bad": PROPERTIES["Text"],
    }
    written = snippets.LANGUAGES["az"].write(place, Entity(KEYS[1], values))

    found = words(require, written[GET])
    assert found[found.index("--partition-key") + 1] == KEYS[1].partition_key
    assert found[found.index("--row-key") + 1] == KEYS[1].row_key
    found = words(require, written[INSERT])

    assert found[found.index("--entity") + 1 :] == [
        f"PartitionKey={KEYS[1].partition_key}",
        f"RowKey={KEYS[1].row_key}",
        f"Text={text}",
        "Big=9223372036854775807",
        "Big@odata.type=Edm.Int64",
    ]
    assert "# no command line can carry Bad" in written[INSERT].code


def words(require, snippet):
    code = f"az() {{ printf '%s\\0' \"$@\"; }}\n{snippet.code}"
    command = [require("bash", "the snippets of the Azure CLI"), "-c", code]
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=RUN_TIMEOUT)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("language", list(snippets.LANGUAGES))
@pytest.mark.parametrize("key", KEYS, ids=["empty", "hostile"])
def test_every_language_has_every_operation(language, key):
    place = Place("http://127.0.0.1/acme", "acme", TABLE)

    found = snippets.LANGUAGES[language].write(place, Entity(key, PROPERTIES))

    assert [snippet.title for snippet in found] == [
        "Get Entity",
        "Insert Entity",
        "Merge Entity",
        "Delete Entity",
    ]
    assert not any("\u202e" in snippet.code or "\x00" in snippet.code for snippet in found)
