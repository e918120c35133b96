"""Findings of the command `doctor` outside the database."""

import json

import pytest
from django.conf import settings
from django.db import connection

from storage.accounts import accounts
from storage.health.findings import Severity
from storage.runtime import doctor
from storage.server import certificate, configuration, examination, options, secret
from storage.server.refusal import Refusal
from storage.sql.django import execute
from tests.certificates import make_certificate


@pytest.fixture
def run(tablero, capsys):
    """Return `run(*arguments)`, which returns the findings of a doctor that finds an error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            tablero("doctor", "--json", *arguments)
        assert end.value.code == 1
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_an_unavailable_database_is_a_finding(run, tmp_path):
    result = run("--data", tmp_path / "none")
    parts = [it["part"] for it in result]
    assert parts[0] == "installation" and parts[-3:] == ["configuration", "tls", "database"]
    assert [it["severity"] == "error" for it in result] == [False] * (len(result) - 1) + [True]
    assert result[-1]["text"].startswith("There is no database in")


def test_an_unknown_setting_is_a_finding(run, tmp_path):
    (tmp_path / "tablero.toml").write_text("lissten = '127.0.0.1:1'")
    [found] = run("--config", tmp_path / "tablero.toml")
    assert (found["part"], found["severity"]) == ("configuration", "error")
    assert "unknown setting lissten (did you mean listen?)" in found["text"]


def examine_certificate(folder):
    settings = {"TABLERO_TLS_CERT": str(folder / "cert.pem"), "TABLERO_TLS_KEY": str(folder / "key.pem")}
    return [(it.severity.value, it.text) for it in certificate.examine(options.read(settings))]


@pytest.mark.parametrize(
    ("days", "severity", "text"),
    [
        (90, "ok", "The certificate for 127.0.0.1 is valid until"),
        (13, "warning", " expires at "),
        (-0.5, "error", " expired at "),
    ],
)
def test_when_the_certificate_expires(tmp_path, days, severity, text):
    _, key = make_certificate(tmp_path, days=days)
    key.chmod(0o600)
    [times, chain] = examine_certificate(tmp_path)
    assert times[0] == severity and text in times[1]
    assert chain == (
        "warning",
        "The certificate signs itself, so that clients have to be told to trust it.",
    )


def test_a_key_that_others_may_read(tmp_path):
    _, key = make_certificate(tmp_path, days=90)
    key.chmod(0o644)
    assert examine_certificate(tmp_path)[-1] == (
        "warning",
        f"Others may read the private key {key}. Run: chmod o-rwx {key}",
    )


def test_a_chain_in_the_wrong_order(tmp_path):
    (tmp_path / "other").mkdir()
    other, _ = make_certificate(tmp_path / "other")
    cert, key = make_certificate(tmp_path, days=90)
    key.chmod(0o600)
    cert.write_text(cert.read_text() + other.read_text())
    severity, text = examine_certificate(tmp_path)[-1]
    assert severity == "error" and "which did not issue it. Put the certificate of the server first" in text


def test_a_certificate_without_its_key(tmp_path):
    cert, key = make_certificate(tmp_path)
    key.unlink()
    [(severity, text)] = examine_certificate(tmp_path)
    assert severity == "error" and f"{cert} with {key} cannot be used: No such file" in text


def test_risky_settings_and_readable_secrets_are_findings(tmp_path, monkeypatch):
    file = tmp_path / "tablero.toml"
    file.write_text('secret = "the secret of a test"\nlisten = "0.0.0.0:1"\ndurability = "relaxed"\n')
    file.chmod(0o644)
    environment = {configuration.FILE: str(file)}
    configuration.apply(environment, dict(environment))
    monkeypatch.setattr("os.environ", environment)
    try:
        results = list(examination.PARTS["configuration"](options.read(environment)))
    finally:
        configuration.origins.clear()
    assert [it.severity.value for it in results] == ["ok", "warning", "warning", "warning"]
    settings, durability, network, secrets = (it.text for it in results)
    assert f"the file {file}" in settings
    assert durability.startswith("Durability is relaxed.") and network.startswith("Without TLS")
    assert secrets == f"{file} has secrets, and others may read it. Run: chmod o-rwx {file}"


def test_a_data_folder_that_others_may_read(tmp_path):
    tmp_path.chmod(0o755)
    text = f"Others may read the data folder. Run: chmod go-rwx {tmp_path}"

    def examine():
        findings = examination.PARTS["installation"](options.read({"TABLERO_DATA": str(tmp_path)}))
        return [it.text for it in findings]

    assert text not in examine()  # it is not a data folder
    (tmp_path / "secret").touch()
    assert text in examine()


@pytest.mark.django_db
def test_settings_of_postgresql_that_lose_data():
    """The database of the tests is fast and not durable."""
    results = list(doctor.parts()["settings"]())
    assert {it.severity for it in results} == {Severity.WARNING}
    assert [it.text.partition(":")[0] for it in results] == [
        "fsync is off",
        "full_page_writes is off",
        "synchronous_commit is off",
    ]


@pytest.mark.django_db(transaction=True)
def test_time_limits_of_the_user_are_findings():
    def renew():
        connection.close()
        connection.close_pool()

    limit = f"ALTER ROLE CURRENT_USER IN DATABASE {connection.settings_dict['NAME']}"
    execute(f"{limit} SET statement_timeout = '1500ms'")
    renew()
    try:
        texts = [it.text for part, it in doctor.examine() if part == "settings"]
    finally:
        execute(f"{limit} RESET statement_timeout")
        renew()
    assert texts[-1] == (
        "statement_timeout is 1.5 s: indexes, copies and deletions that take longer fail. Set it to 0 for the user"
        " of Tablero."
    )


@pytest.mark.django_db(transaction=True)
def test_a_secret_that_does_not_open_the_keys(monkeypatch):
    assert {it.severity for it in doctor.parts()["database"]()} == {Severity.OK}
    accounts.add("acme")
    monkeypatch.setattr(settings, "SERVER_SECRET", b"not the secret of the account")
    last = list(doctor.parts()["database"]())[-1]
    assert last.severity is Severity.ERROR
    assert "The account keys of acme in this database were sealed with another secret." in last.text


@pytest.mark.parametrize("content", [b"", b"short", bytes(range(100, 200))])
def test_a_damaged_secret_is_named_with_the_way_out(tmp_path, content):
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(Refusal) as refused:
        secret.read(options.read({"TABLERO_DATA": str(tmp_path)}))
    assert str(refused.value) == (
        f"The secret in {tmp_path}/secret is damaged. Move that file away, and bring the secret back from a backup:"
        f" tablero restore BACKUP --secret-only --data {tmp_path}"
    )
