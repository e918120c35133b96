"""Backups in a folder, a bucket of S3 and a container of Azure Blob Storage: one store as the others."""

import importlib.util
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from storage.backups import last_backup
from storage.backups.last_backup import Kind
from storage.server import embedded, options
from storage.server.backups import description
from storage.server.backups.stores import open_store
from storage.server.refusal import Refusal
from tests.commands import manage
from tests.live_server import ROOT
from tests.programs import missing
from tests.server import object_stores
from tests.server.test_backup import PASSPHRASE, execute

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
PART = 8 << 20


def require_modules(*names):
    for name in names:
        if importlib.util.find_spec(name) is None:
            missing(f"{name} is not installed, which these backups need")


@pytest.fixture(scope="module")
def s3():
    require_modules("obstore", "moto")
    with object_stores.s3() as found:
        yield found


@pytest.fixture(scope="module")
def azure(require, scratch):
    require_modules("obstore")
    require("node", "Azurite")
    with object_stores.azure(require("npm", "Azurite"), scratch / f"azurite-{uuid4().hex}") as found:
        yield found


OBJECT_STORES = [pytest.param(name, marks=pytest.mark.long) for name in ("s3", "az")]


@pytest.fixture(params=["folder", *OBJECT_STORES])
def location(request, tmp_path, monkeypatch):
    if request.param == "folder":
        return str(tmp_path / "backups")
    environment = request.getfixturevalue("s3" if request.param == "s3" else "azure")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return f"{request.param}://{object_stores.BUCKET}/{tmp_path.name}/nightly"


def written(draft, file, content):
    with draft.create(file) as sink:
        for start in range(0, len(content), 1 << 20):
            sink.write(content[start : start + (1 << 20)])


def fail_in_the_middle(store, content):
    with store.draft(NOW) as draft:
        written(draft, "complete", content)
        with draft.create("half") as sink:
            sink.write(content)
            raise RuntimeError


def test_a_backup_appears_when_it_is_complete(location):
    store = open_store(location)
    large = os.urandom(2 * PART + 5)
    with store.held():
        with store.draft(NOW) as draft:
            written(draft, "large", large)
            written(draft, "empty", b"")
            assert description.backups(store) == []
            draft.publish(b"{}")
        with store.draft(NOW) as second:
            assert second.name != draft.name
        with pytest.raises(RuntimeError):
            fail_in_the_middle(store, large)
    assert store.names() == [draft.name]
    assert store.files(draft.name) == {"backup.json": 2, "empty": 0, "large": len(large)}
    with store.open(draft.name, "large") as reader:
        pieces = iter(lambda: reader.read(3_000_001), b"")
        assert b"".join(pieces) == large
    with store.open(draft.name, "empty") as reader:
        assert reader.read() == b""
    with pytest.raises(FileNotFoundError), store.open(draft.name, "none"):
        pass
    store.delete(draft.name)
    assert store.names() == [] and store.files(draft.name) == {}


DIE = """
import os, sys
from datetime import UTC, datetime
from storage.server.backups.stores import open_store
store = open_store(sys.argv[1])
with store.held(), store.draft(datetime(2026, 11, 25, 12, tzinfo=UTC)) as draft:
    with draft.create("large") as sink:
        sink.write(b"large")
    os._exit(9)
"""


def test_drafts_of_killed_processes_are_removed_but_not_those_of_others(location):
    assert subprocess.run([sys.executable, "-c", DIE, location], cwd=ROOT, check=False).returncode == 9
    store = open_store(location)
    hidden = "" if "://" in location else "."
    [abandoned] = [f"{hidden}{it}" for it in (NOW.strftime(f"%Y-%m-%dT%H-%M-%SZ{hidden and '.part'}"),)]
    assert store.files(abandoned) == {"large": 5}
    with store.held(), store.draft(NOW + timedelta(minutes=1)) as draft:
        assert store.files(abandoned) == {}
        written(draft, "kept", b"kept")
        if "://" in location:  # several at a time
            with open_store(location).held():
                assert store.files(draft.name) == {"kept": 4}
        draft.publish(b"{}")
    assert store.names() == [draft.name]


@pytest.mark.long
def test_a_sealed_chain_is_made_listed_and_tested(used, s3, tmp_path, monkeypatch):
    """Test the effects of a bucket, a passphrase and a chain; test_backup.py shows that nothing is lost."""
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    location = f"s3://{object_stores.BUCKET}/chain"
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    sealed = ("--passphrase-file", tmp_path / "passphrase")
    arguments = (location, "--data", used, *sealed, "--full-every", "3")
    config = used / "config"
    config.mkdir(exist_ok=True)
    (config / "custom.conf").write_text("summarize_wal = on\n")
    with embedded.running(options.read({"TABLERO_DATA": str(used)}), purpose="serve", say=print):
        execute(used, "CREATE TABLE stock AS SELECT 11 AS value")
        said = manage("backup", *arguments)
        assert f"{location}/20" in said and "not encrypted" not in said
        execute(used, "INSERT INTO stock VALUES (22)")
        said += manage("backup", *arguments)
    store = open_store(location)
    full, incremental = description.backups(store)
    assert (incremental.kind, incremental.parent) == (Kind.INCREMENTAL, full.name)
    listed = manage("backup", "--list", location).splitlines()
    assert [line.split()[:2] for line in listed] == [[full.name, "files"], [incremental.name, "incremental"]]
    assert last_backup.read(used).last.path == incremental.location
    for it in (full, incremental):
        for file in store.files(it.name):
            with store.open(it.name, file) as reader:
                content = reader.read()
            assert b"stock" not in content and s3["AWS_SECRET_ACCESS_KEY"].encode() not in content
    assert s3["AWS_SECRET_ACCESS_KEY"] not in said

    assert "is sealed; give the passphrase" in manage("backup", "--test", location, "--data", used, status=1)
    assert "passed in" in manage("backup", "--test", location, "--data", used, *sealed)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("s3://key:secret@backups/x", r"Leave credentials and options out of the URL s3://\.\.\.;"),
        ("az://backups/x?sig=abc", r"Leave credentials and options out of the URL az://\.\.\.;"),
        ("gs://backups", "give a folder, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX"),
    ],
)
def test_urls_that_are_refused(given, said):
    with pytest.raises(Refusal, match=said) as refused:
        open_store(given)
    assert "secret" not in str(refused.value) and "abc" not in str(refused.value)


@pytest.mark.long
def test_a_missing_bucket_is_refused(s3, monkeypatch):
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Refusal, match="There is no bucket nothing; create it"):
        open_store("s3://nothing/x").names()


@pytest.mark.long
def test_wrong_credentials_are_refused_without_being_shown(azure, monkeypatch):
    [(name, value)] = azure.items()
    monkeypatch.setenv(name, value.replace("AccountKey=Eby8", "AccountKey=EbyA"))
    with pytest.raises(Refusal, match="refuses access: check the environment variables") as refused:
        open_store("az://backups").names()
    assert "EbyA" not in str(refused.value)


def test_without_its_library_a_url_is_refused_with_a_remedy():
    program = (
        "import sys; sys.modules['obstore'] = None\n"
        "from storage.server.backups.stores import open_store\n"
        "open_store('s3://backups')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "Refusal: Backups in S3 and Azure Blob Storage need another library" in done.stderr
    assert "pip install 'tablero-server[cloud]'" in done.stderr
