"""The data of a server that ran once, with which others begin: initdb and migrations take most of a first start.

One process of the run makes it; the others wait for it and copy it.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

SEED = "seed"  # the folder with the data that others begin with
SHARED = "TEST_SHARED"  # the environment variable that names the folder that all processes of a run share


@contextmanager
def shared_folder():
    """Make the folder of a run, for the process that starts the others."""
    folder = Path(tempfile.mkdtemp(prefix="tablero-shared-"))
    folder.chmod(0o711)  # root's PostgreSQL, an unprivileged user, passes through it
    os.environ[SHARED] = str(folder)
    os.environ["XDG_STATE_HOME"] = str(folder / "state")  # where servers announce themselves
    try:
        yield
    finally:
        del os.environ[SHARED], os.environ["XDG_STATE_HOME"]
        shutil.rmtree(folder, ignore_errors=True)


def seeded(data):
    """Make a data folder in which a server was before, and return it."""
    from tests.live_server import copy_data, start_server

    shared = Path(os.environ[SHARED])
    seed = shared / SEED
    with (shared / "seed.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not (shared / "seed.made").exists():
            with start_server(seed) as live:
                assert live.stop() == 0
            (shared / "seed.made").touch()
    return copy_data(seed, data)
