"""A data folder whose secret is lost, and a backup that has it."""

import pytest

from storage.server import options
from storage.server.backups import restore
from storage.server.refusal import Refusal
from tests.commands import manage
from tests.seeds import seeded

pytestmark = pytest.mark.long


def test_a_lost_secret_comes_back_from_a_sealed_backup(scratch):
    data, backups, passphrase = seeded(scratch / "keys"), scratch / "sealed", scratch / "passphrase"
    passphrase.write_text("correct horse battery staple\n")
    manage("backup", backups, "--data", data, "--passphrase-file", passphrase)
    lost = (data / "secret").read_text()
    (data / "secret").unlink()

    said = manage("account", "list", "--data", data, status=1)
    assert f"tablero restore BACKUP --secret-only --data {data}" in said

    here, backup = options.read({"TABLERO_DATA": str(data)}), restore.find(str(backups))
    with pytest.raises(Refusal, match="is sealed; give the passphrase"):
        restore.restore_secret(here, backup)
    (data / "secret").write_text("another secret that is long enough\n")
    with pytest.raises(Refusal, match="is another secret than that of the backup"):
        restore.restore_secret(here, backup, passphrase.read_bytes().strip())
    (data / "secret").unlink()

    sealed = ("--passphrase-file", passphrase)
    manage("restore", backups, "--secret-only", "--data", data, *sealed)
    assert (data / "secret").read_text() == lost
    assert (data / "secret").stat().st_mode & 0o777 == 0o600
    manage("account", "list", "--keys", "--data", data)
