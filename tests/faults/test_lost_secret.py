"""A data folder whose secret is lost, and a backup that has it."""

import subprocess
import sys

import pytest

from storage.server import options
from storage.server.backups import restore
from storage.server.refusal import Refusal
from tests.live_server import ROOT, clean_environment
from tests.seeds import seeded


def manage(*arguments):
    command = [sys.executable, ROOT / "manage.py", *arguments]
    done = subprocess.run(
        command, env=clean_environment(), capture_output=True, text=True, timeout=180, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_a_lost_secret_comes_back_from_a_sealed_backup(scratch):
    data, backups, passphrase = seeded(scratch / "keys"), scratch / "sealed", scratch / "passphrase"
    passphrase.write_text("correct horse battery staple\n")
    assert manage("backup", backups, "--data", data, "--passphrase-file", passphrase)[0] == 0
    lost = (data / "secret").read_text()
    (data / "secret").unlink()

    status, said = manage("account", "list", "--data", data)
    assert status == 1
    assert f"tablero restore BACKUP --secret-only --data {data}" in said

    here, backup = options.read({"TABLERO_DATA": str(data)}), restore.find(str(backups))
    with pytest.raises(Refusal, match="is sealed; give the passphrase"):
        restore.restore_secret(here, backup)
    (data / "secret").write_text("another secret that is long enough\n")
    with pytest.raises(Refusal, match="is another secret than that of the backup"):
        restore.restore_secret(here, backup, passphrase.read_bytes().strip())
    (data / "secret").unlink()

    sealed = ("--passphrase-file", passphrase)
    assert manage("restore", backups, "--secret-only", "--data", data, *sealed)[0] == 0
    assert (data / "secret").read_text() == lost
    assert (data / "secret").stat().st_mode & 0o777 == 0o600
    assert manage("account", "list", "--keys", "--data", data)[0] == 0
