"""Commands of manage.py in processes that are forked from one that has imported everything, which takes milliseconds.

Tests run manage.py often, and most of its time is its start: `python -m tests.forked SOCKET` listens, and is sent what
a process inherits. A server runs its commands by `run_command`, and the examples of the documents by a manage.py of
``CLIENT``. Commands on other data, and commands that start a database, run as ever. The server has a data
folder of its own: an example that does not name one gets the option --data, as the documents say.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.live_server import ROOT, clean_environment

CLIENT = """
import json, os, runpy, socket, sys
arguments = sys.argv[1:]
if "--data" not in arguments and "TABLERO_DATA" not in os.environ:
    arguments += ["--data", {data!r}]
    sys.argv[1:] = arguments
named = arguments[arguments.index("--data") + 1] if "--data" in arguments else os.environ["TABLERO_DATA"]
if named != {data!r} or arguments[0] in {alone!r}:
    sys.path.insert(0, {root!r})
    runpy.run_path({root!r} + "/manage.py", run_name="__main__")
    sys.exit()
umask = os.umask(0)
os.umask(umask)
with socket.socket(socket.AF_UNIX) as forge:
    forge.connect({path!r})
    socket.send_fds(forge, [b" "], [0, 1, 2])
    forge.sendall(json.dumps([arguments, os.getcwd(), umask, dict(os.environ)]).encode())
    forge.shutdown(socket.SHUT_WR)
    sys.exit(int(forge.recv(16) or 1))
"""


def manage_py(data: Path) -> str:
    """Return the text of a manage.py for the examples of the documents."""
    from storage.server.command_line import ALONE

    alone = ["serve", "doctor", "upgrade", *ALONE]
    return CLIENT.format(root=str(ROOT), path=_listen(), data=str(data), alone=alone)


@cache
def _listen() -> str:
    """Start the process for the commands of this one, with which it ends, and return its address."""
    folder = tempfile.TemporaryDirectory(prefix="tablero-forked-")
    address = f"{folder.name}/socket"
    forge = subprocess.Popen(
        [sys.executable, "-m", "tests.forked", address],
        cwd=ROOT,
        env={**clean_environment(), "DJANGO_SETTINGS_MODULE": "console.settings"},
        stdin=subprocess.PIPE,  # ends when we do, also by a kill
        stdout=subprocess.PIPE,
    )
    atexit.register(folder.cleanup)
    atexit.register(forge.kill)
    assert forge.stdout is not None and forge.stdout.readline() == b"ready\n"
    return address


def run_command(data: Path, command: str, *arguments: str, database: str = "") -> tuple[int, str, str]:
    """Run a command on a data folder, perhaps with a database elsewhere; return its status, output and errors."""
    given = {**clean_environment(), "TABLERO_DATA": str(data)}
    if database:
        given["DATABASE_URL"] = database
    words = [command, "--data", str(data), *arguments]
    with (
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryFile("w+") as errors,
        Path(os.devnull).open() as nothing,
        socket.socket(socket.AF_UNIX) as forge,
    ):
        forge.settimeout(180)
        forge.connect(_listen())
        socket.send_fds(forge, [b" "], [it.fileno() for it in (nothing, output, errors)])
        forge.sendall(json.dumps([words, str(Path.cwd()), 0o022, given]).encode())
        forge.shutdown(socket.SHUT_WR)
        status = int(forge.recv(16) or 1)
        for file in (output, errors):
            file.seek(0)
        return status, output.read(), errors.read()


def main() -> None:
    import django

    django.setup()
    from django.core.management import get_commands, load_command_class

    from storage.server import command_line

    for name in command_line.own_commands() - {"serve"}:
        load_command_class(get_commands()[name], name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                run(client, command_line.main)
            client.close()


def use_data(arguments: list[str]) -> None:
    """Point the settings, which were read before, to the data folder of a command."""
    from django.conf import settings
    from django.db import connection

    from storage.server import database, options, secret

    named = {"TABLERO_DATA": arguments[arguments.index("--data") + 1]} if "--data" in arguments else {}
    settings.OPTIONS = options.read({**os.environ, **named})
    settings.SERVER_SECRET = secret.read(settings.OPTIONS)
    settings.LANES_CONNINFO = database.conninfo(settings.OPTIONS)
    settings.DATABASES["default"].update(database.databases(settings.OPTIONS)["default"])
    connection.settings_dict.update(database.databases(settings.OPTIONS)["default"])


def run(client: socket.socket, command: Callable[[list[str]], None]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, descriptors, _, _ = socket.recv_fds(client, 1, 3)
    text = b"".join(iter(lambda: client.recv(1 << 16), b""))
    arguments, folder, umask, environment = json.loads(text)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # a stream remembers whether its file can seek, and these files are others
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environment)
    use_data(arguments)
    status: object = 0
    try:
        command(arguments)
    except SystemExit as ended:
        status = ended.code or 0
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    client.sendall(str(status).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
