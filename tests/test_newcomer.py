"""The first minutes with Tablero, from its wheel to a test with its fixtures."""

import pytest

from tests.newcomer import Newcomer

pytestmark = pytest.mark.slow


def test_from_the_wheel_to_a_copy_of_azurites_file_and_a_test(scratch):
    folder = scratch / "newcomer"
    folder.mkdir(mode=0o711)
    (folder / "home").mkdir(mode=0o711)
    newcomer = Newcomer(folder / "home", borrows=True)
    newcomer.follow()
    assert list(newcomer.steps) == [
        "install",
        "start",
        "connect an SDK",
        "copy Azurite's file",
        "see it in the console",
        "run a test with the fixtures",
    ]
