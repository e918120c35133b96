"""nginx and Caddy with the configurations of docs/service, in front of a server of the tests."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.ports import held_port
from tests.service.conftest import SERVICE

PATIENCE = 60

NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/tablero.conf;
}}
"""
CADDY = """{{
	admin off
	auto_https disable_redirects
	storage file_system {folder}/storage
}}
"""


def substitute(text: str, replacements: dict[str, str]) -> str:
    """Fit a configuration to the test; each part that is replaced must be in it."""
    for old, new in replacements.items():
        assert re.search(old, text), f"{old} is not in the configuration"
        text = re.sub(old, new, text)
    return text


def configure_nginx(folder: Path, port: int, server: int, cert: Path, key: Path) -> list[str]:
    text = substitute(
        (SERVICE / "nginx.conf").read_text(),
        {
            r"listen 80;": f"listen unix:{folder}/http.sock;",
            r"listen 443 ssl;": f"listen 127.0.0.1:{port} ssl reuseport;",
            r"/etc/tablero/fullchain\.pem": str(cert),
            r"/etc/tablero/privkey\.pem": str(key),
            r"127\.0\.0\.1:10002": f"127.0.0.1:{server}",
        },
    )
    (folder / "tablero.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "main.conf").write_text(NGINX.format(folder=folder, user=user))
    return ["-c", str(folder / "main.conf"), "-p", str(folder)]


def configure_caddy(folder: Path, port: int, server: int, cert: Path, key: Path) -> list[str]:
    text = substitute(
        (SERVICE / "Caddyfile").read_text(),
        {
            r"(?m)^tables\.example\.org \{": f"https://127.0.0.1:{port} {{\n\tbind 127.0.0.1\n\ttls {cert} {key}",
            r"127\.0\.0\.1:10002": f"127.0.0.1:{server}",
        },
    )
    (folder / "Caddyfile").write_text(CADDY.format(folder=folder) + text)
    return ["run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


CONFIGURE = {"nginx": configure_nginx, "caddy": configure_caddy}


@contextmanager
def running(
    name: str, program: str, folder: Path, server: int, certificate: tuple[Path, Path]
) -> Iterator[str]:
    """Run a proxy in front of the server at a port, and yield its address."""
    with held_port() as port, (folder / "log").open("w+") as log:
        arguments = CONFIGURE[name](folder, port, server, *certificate)
        process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(folder)},
        )
        try:
            url = f"https://127.0.0.1:{port}"
            wait_until_ready(url, process, certificate[0], folder / "log")
            yield url
        finally:
            process.terminate()
            process.wait(PATIENCE)


def wait_until_ready(url: str, process: subprocess.Popen[bytes], cert: Path, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            requests.get(f"{url}/ui/healthz", verify=str(cert), timeout=PATIENCE)
        except requests.ConnectionError:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        else:
            return
