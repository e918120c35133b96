"""PgBouncer as Debian packages it, in front of a test's PostgreSQL."""

import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from storage.server import installation, options
from storage.server.data_folder import DataFolder
from tests import programs
from tests.ports import held_port

SERVER_CONNECTIONS = 4
START_TIMEOUT = 180

# the pooler hands out another connection after each transaction, so that nothing of a session survives one by chance
CONFIGURATION = """
[databases]
direct = host={host} user=tablero dbname={name} pool_mode=session pool_size=80
pooled = host={host} user=tablero dbname={name} pool_mode=transaction pool_size={connections}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
max_client_conn = 500
server_round_robin = 1
server_lifetime = 3600
"""


@dataclass(frozen=True)
class Pooler:
    """``direct`` keeps sessions, ``pooled`` transactions only."""

    direct: str
    pooled: str


@contextmanager
def running(folder, data, name):
    """Run a pooler, with its files in ``folder``, for the database ``name`` in the PostgreSQL of a data folder."""
    result = options.read({"TABLERO_DATA": str(data)})
    postgres = installation.find(result, DataFolder(result.data))
    host = DataFolder(result.data).socket_folder
    _let_in(postgres, DataFolder(result.data))
    folder.mkdir(mode=0o711)
    path = folder / "pgbouncer.ini"
    with held_port() as port:
        path.write_text(CONFIGURATION.format(host=host, name=name, port=port, connections=SERVER_CONNECTIONS))
        path.chmod(0o644)
        process = subprocess.Popen([programs.find("pgbouncer"), "-q", str(path)], cwd="/", **postgres.popen)
        url = f"postgresql://tablero@127.0.0.1:{port}"
        try:
            _fill(f"{url}/pooled", process)
            yield Pooler(f"{url}/direct", f"{url}/pooled")
        finally:
            process.terminate()
            process.wait(60)


def _let_in(postgres, folder):
    """Let the pooler connect: under root it runs as PostgreSQL's user, who is not a client by itself."""
    if postgres.user is None:
        return
    with (folder.config / "pg_ident.conf").open("a") as file:
        file.write(f"tablero {postgres.user.name} tablero\n")
    socket_folder = str(folder.socket_folder)
    with psycopg.connect(host=socket_folder, user="tablero", dbname="postgres", autocommit=True) as admin:
        admin.execute("SELECT pg_reload_conf()")


def _fill(url, process):
    """Have the pooler open all of its connections."""
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            clients = [psycopg.connect(url) for _ in range(SERVER_CONNECTIONS)]
            break
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    for client in clients:
        client.execute("SELECT 1")  # begins a transaction
    for client in clients:
        client.commit()
        client.close()
