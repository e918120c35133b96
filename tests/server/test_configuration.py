"""The configuration file: what it may say, what wins over it, and how settings are listed."""

import json

import pytest

from storage.server import configuration
from storage.server.refusal import Refusal

TEXT = """
listen = "0.0.0.0:443"
workers = 4
data = "data"
backup_to = "s3://bucket/prefix"
allow-development-account = true
require-second-factor = false
upgrade-backup = false
trusted-proxies = ["10.0.0.0/8", "::1"]
replicas = ["postgresql://a", "postgresql://b"]
secret = "a very long secret of the server"
database-url = "postgresql://tablero:password@db/tablero"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tablero.toml"
    path.write_text(TEXT)
    return path


def applied(file, before=(), **options):
    environ = {configuration.FILE: str(file), **dict(before)}
    before = dict(environ)
    environ |= options
    configuration.apply(environ, before)
    return environ


def test_values_become_variables(file, tmp_path):
    result = applied(file)
    assert result == {
        "TABLERO_CONFIG": str(file),
        "TABLERO_LISTEN": "0.0.0.0:443",
        "TABLERO_WORKERS": "4",
        "TABLERO_DATA": str(tmp_path / "data"),
        "TABLERO_BACKUP_TO": "s3://bucket/prefix",
        "TABLERO_ALLOW_DEVELOPMENT_ACCOUNT": "1",
        "TABLERO_REQUIRE_SECOND_FACTOR": "",
        "TABLERO_UPGRADE_BACKUP": "off",
        "TABLERO_TRUSTED_PROXIES": "10.0.0.0/8,::1",
        "TABLERO_REPLICAS": "postgresql://a postgresql://b",
        "TABLERO_SECRET": "a very long secret of the server",
        "DATABASE_URL": "postgresql://tablero:password@db/tablero",
    }


def test_options_win_over_variables_and_these_over_the_file(file):
    result = applied(file, {"TABLERO_WORKERS": "2"}, TABLERO_LISTEN="127.0.0.1:1")
    assert (result["TABLERO_WORKERS"], result["TABLERO_LISTEN"]) == ("2", "127.0.0.1:1")
    listed = {it.name: it for it in configuration.settings(result)}
    assert [listed[name].origin for name in ("listen", "workers", "data", "hsts")] == [
        "option",
        "environment",
        str(file),
        "default",
    ]
    assert listed["hsts"].value == "31536000"


def test_an_empty_variable_counts_as_not_set_but_an_empty_option_is_a_value(file):
    result = applied(
        file, {"TABLERO_WORKERS": "", "TABLERO_HSTS": "", "DATABASE_URL": ""}, TABLERO_BACKUP_TO=""
    )
    listed = {it.name: (it.value, it.origin) for it in configuration.settings(result)}
    assert listed["workers"] == ("4", str(file))
    assert listed["hsts"] == ("31536000", "default")
    assert listed["database-url"] == ("postgresql://tablero:***@db/tablero", str(file))
    assert listed["backup-to"] == ("", "option")


def test_secrets_are_not_listed(file):
    listed = [it.value for it in configuration.settings(applied(file))]
    assert "(secret)" in listed
    assert "postgresql://tablero:***@db/tablero" in listed
    assert not any("very long" in value or "password" in value for value in listed)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hid@d/en@db/t",
        "postgresql://db/t?user=u&password=hidden&sslmode=require",
        "host=db password='hidden \\' hidden' user=u",
        "host=db user=u password = hidden",
    ],
)
def test_passwords_of_no_form_are_listed(url):
    listed = {it.name: it.value for it in configuration.settings({"DATABASE_URL": url})}["database-url"]
    assert "***" in listed
    assert not any(part in listed for part in ("hid", "den"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lisen = 1", "unknown setting lisen (did you mean listen?)"),
        ("config = 'other.toml'", "unknown setting config"),
        ("[serve]\nworkers = 1", "unknown setting serve"),
        ("workers = 1.5", "sets workers to 1.5, which is not a text or a number"),
        ("workers = true", "sets workers to True, which is not a text or a number"),
        ("workers = [1]", "sets workers to [1], which is not a text or a number"),
        ("debug = 1", "sets debug to 1, which is not true or false"),
        ("replicas = [1]", "sets replicas to [1], which is not a text, a number or a list of texts"),
        ("workers = ", "is not TOML"),
        ("x = '\xff'", "is not TOML"),
    ],
)
def test_refuses_invalid_configuration(tmp_path, text, message):
    path = tmp_path / "tablero.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(Refusal) as refused:
        applied(path)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "secret = ['hidden']",
        "metrics-token = ['hidden']",
        "login-oidc-client-secret = {value = 'hidden'}",
        "smtp-url = ['smtp://user:hidden@example.com']",
        "database-url = [['host=db password=\"hidden\"']]",
        "[database-url]\nhost = 'db'\npassword = 'hidden'",
        "[[replicas]]\npassword = 'hidden'",
    ],
)
def test_a_refusal_has_no_secret(tmp_path, text):
    (tmp_path / "tablero.toml").write_text(text)
    with pytest.raises(Refusal) as refused:
        applied(tmp_path / "tablero.toml")
    assert "hidden" not in str(refused.value)


def test_refuses_a_missing_file(tmp_path):
    with pytest.raises(Refusal, match=r"cannot be read: No such file or directory\.$"):
        applied(tmp_path / "missing.toml")


def test_the_command_prints_settings_without_a_database(tablero, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tablero.toml").write_text("workers = 3\nmetrics-token = '0123456789abcdef0123'\n")
    result = json.loads(tablero("config", "--config", "tablero.toml", "--data", "d", "--json"))
    assert result["workers"] == {"value": "3", "origin": "tablero.toml"}
    assert result["metrics-token"]["value"] == "(secret)"
    assert result["data"] == {"value": "d", "origin": "option"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tablero.toml"]
