"""The choice of a server's data folder."""

import os

import pytest

from storage.server import options, secret
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal


@pytest.mark.parametrize(
    "others", [[], ["lost+found"], ["config", "logs", "run", "lock"], ["secret", "notes.txt"]]
)
def test_takes_an_empty_folder_or_one_of_its_own_and_makes_it_private(tmp_path, others):
    tmp_path.chmod(0o755)
    for name in others:
        (tmp_path / name).touch()
    DataFolder(tmp_path).create()
    # root's PostgreSQL, another user, passes through
    assert tmp_path.stat().st_mode & 0o777 == (0o701 if os.geteuid() == 0 else 0o700)


def test_refuses_a_folder_of_something_else(tmp_path):
    (tmp_path / "thesis.tex").touch()
    tmp_path.chmod(0o755)
    with pytest.raises(Refusal, match=r"has files of something else, such as thesis\.tex"):
        DataFolder(tmp_path).create()
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_refuses_a_file(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(Refusal, match="is a file; choose a folder"):
        DataFolder(file).create()
    with pytest.raises(Refusal, match="is a file; choose a folder"):
        secret.read(options.read({"TABLERO_DATA": str(file)}))
