import pytest
from psycopg.conninfo import conninfo_to_dict

from storage.server import database, options
from storage.server.backups import programs
from storage.server.refusal import Refusal

URL = "postgresql://ada:p%40ss@db.example.org:6432/tables?sslmode=require&options=-c%20work_mem%3D8MB"


def test_embedded_by_socket():
    result = database.databases(options.read({"TABLERO_DATA": "/data"}))["default"]
    assert (result["HOST"], result["PORT"], result["NAME"]) == ("/data/run", "5432", "tablero")


def test_elsewhere_by_url():
    result = database.databases(options.read({"DATABASE_URL": URL}))["default"]

    assert (result["USER"], result["PASSWORD"]) == ("ada", "p@ss")
    assert (result["HOST"], result["PORT"], result["NAME"]) == ("db.example.org", "6432", "tables")
    assert result["OPTIONS"]["sslmode"] == "require"


def test_elsewhere_in_an_encoding_that_can_send_every_text():
    environ = {"DATABASE_URL": f"{URL}&client_encoding=LATIN1"}
    assert conninfo_to_dict(database.conninfo(options.read(environ)))["client_encoding"] == "UTF8"
    assert programs.environment(options.read(environ))["PGCLIENTENCODING"] == "UTF8"


def test_relaxed_durability_beside_own_options():
    environ = {"DATABASE_URL": URL, "TABLERO_DURABILITY": "relaxed"}
    result = conninfo_to_dict(database.conninfo(options.read(environ)))
    assert result["options"] == "-c work_mem=8MB -c synchronous_commit=off"


@pytest.mark.parametrize("url", ["mysql://a/b", "postgresql://[", "postgresql://a/b?no_such=1"])
def test_refuses_invalid_urls(url):
    with pytest.raises(Refusal, match="DATABASE_URL"):
        database.parameters(options.read({"DATABASE_URL": url}))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:100%sesame@h/db",
        "postgresql://u:sesame%00@h/db",
        "postgresql://u@h/db?password=sesame%zz",
        "postgresql://u:p@sesame@h/db",
        "postgresql://u:sesame/x@h/db",
        "postgresql://u:sesame#x@h/db",
        "postgresql://u:sesame",
        "postgresql://u@h/db?sesame=1",
    ],
)
@pytest.mark.parametrize("variable", ["DATABASE_URL", "TABLERO_REPLICAS", "TABLERO_POOLER_URL"])
def test_refuses_without_quoting_a_password(variable, url):
    environ = {"DATABASE_URL": URL, variable: url}
    with pytest.raises(Refusal, match=f"^{variable} .*%25") as refused:
        database.databases(options.read(environ))
    assert "sesame" not in str(refused.value)


def test_several_hosts_with_one_for_writes():
    url = "postgresql://ada@db1.example.org:6432,db2.example.org:6433/tables?connect_timeout=9"
    result = conninfo_to_dict(database.conninfo(options.read({"DATABASE_URL": url})))
    assert (result["host"], result["port"]) == ("db1.example.org,db2.example.org", "6432,6433")
    assert result["target_session_attrs"] == "read-write"
    assert result["connect_timeout"] == "9"
    assert result["tcp_user_timeout"]


REPLICAS = "postgresql://ada:secret@db2.example.org/tables  postgresql:///tables?host=/run/pg&user=ada"


def test_replicas_have_names_without_secrets():
    result = options.read({"DATABASE_URL": URL, "TABLERO_REPLICAS": REPLICAS})
    first, second = database.read_sources(result)
    assert (first.name, second.name) == ("db2.example.org:5432", "/run/pg")
    assert (first.alias, second.alias) == tuple(database.databases(result))[1:]
    assert "target_session_attrs" not in conninfo_to_dict(first.conninfo)
    assert database.databases(result)[first.alias]["PASSWORD"] == "secret"


@pytest.mark.parametrize(
    ("url", "replicas"), [("", REPLICAS), (URL, "db2.example.org"), (URL, "postgresql://a/b?no_such=1")]
)
def test_refuses_invalid_replicas(url, replicas):
    with pytest.raises(Refusal, match="TABLERO_REPLICAS"):
        database.read_sources(options.read({"DATABASE_URL": url, "TABLERO_REPLICAS": replicas}))
