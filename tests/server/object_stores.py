"""Servers that speak the protocols of S3 and of Azure Blob Storage: moto, and Azurite from npm."""

import base64
import hashlib
import hmac
import json
import socket
import subprocess
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import requests
from platformdirs import user_cache_path

from tests import programs
from tests.clients.javascript import installation
from tests.live_server import ACCOUNT, KEY
from tests.ports import free_port
from tests.waiting import wait_for

BUCKET = "backups"
PACKAGE = Path(__file__).with_name("package.json")
VERSION = json.loads(PACKAGE.read_text())["dependencies"]["azurite"]
PATIENCE = 60.0


@contextmanager
def s3():
    """Yield the environment variables by which clients find it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        assert requests.put(f"{url}/{BUCKET}", timeout=PATIENCE).ok
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "access-key-of-the-tests",
            "AWS_SECRET_ACCESS_KEY": "secret-key-of-the-tests",
            "AWS_REGION": "us-east-1",
        }
    finally:
        server.stop()


@contextmanager
def azure(npm, folder):
    """Like ``s3``, for a container of Azurite."""
    with azurite(npm, folder, "blob") as endpoint:
        create_container(endpoint)
        yield {
            "AZURE_STORAGE_CONNECTION_STRING": f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"
        }


@contextmanager
def azurite(npm, folder, service):
    """Yield the endpoint of a service of Azurite, which keeps its files in the folder: blob or table."""
    modules = user_cache_path("tablero") / "npm" / f"azurite-{VERSION}"
    if not modules.exists():
        installation.install(modules, npm, PACKAGE)
    port = free_port()
    folder.mkdir()
    script = modules / "node_modules" / "azurite" / "dist" / "src" / service / "main.js"
    options = [f"--{service}Port", str(port), "--location", str(folder), "--silent", "--disableTelemetry"]
    process = subprocess.Popen(
        [programs.find("node"), str(script), *options, "--skipApiVersionCheck"], stdout=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: is_listening(port) or process.poll() is not None, patience=PATIENCE)
        assert process.poll() is None
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def is_listening(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def create_container(endpoint):
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    signed = "".join(f"{name}:{value}\n" for name, value in headers.items())
    empty = "\n" * 12  # headers that could be signed
    text = f"PUT{empty}{signed}/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    answer = requests.put(f"{endpoint}/{BUCKET}?restype=container", headers=headers, timeout=PATIENCE)
    assert answer.status_code == 201, answer.text
