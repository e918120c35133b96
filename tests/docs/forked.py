"""Commands of manage.py in processes that are forked from one that has imported everything, which takes milliseconds.

The examples of the documents run manage.py often, on the data of one server, and most of its time is its start:
`python -m tests.docs.forked SOCKET` listens, and a manage.py of ``CLIENT`` sends it what a process inherits. Those on
other data, and those that start a database, run as ever. The server has a data folder of its own: an example that does
not name one gets the option --data, as the documents say.
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.live_server import ROOT

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


@contextmanager
def running(path: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the text of a manage.py."""
    from storage.server.command_line import ALONE

    with subprocess.Popen(
        [sys.executable, "-m", "tests.docs.forked", str(path)],
        cwd=ROOT,
        env={**environment, "DJANGO_SETTINGS_MODULE": "console.settings"},
        stdout=subprocess.PIPE,
    ) as forge:
        try:
            assert forge.stdout is not None and forge.stdout.readline() == b"ready\n"
            alone = {"serve", "doctor", "upgrade", *ALONE}
            yield CLIENT.format(root=str(ROOT), path=str(path), data=environment["TABLERO_DATA"], alone=alone)
        finally:
            forge.terminate()


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
        while True:
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                run(client, command_line.main)
            client.close()


def run(client: socket.socket, command: Callable[[list[str]], None]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, descriptors, _, _ = socket.recv_fds(client, 1, 3)
    text = b"".join(iter(lambda: client.recv(1 << 16), b""))
    arguments, folder, umask, environment = json.loads(text)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environment)
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
