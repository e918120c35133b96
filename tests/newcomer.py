"""First steps of a new user of Tablero, each step timed: `python3 -m tests.newcomer`, under five minutes.

With nothing but Python and an empty home: install the wheel of this source with its dependencies, start a server,
point an SDK at it, copy a file of Azurite, see it in the console, and run a test with the fixtures.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from sysconfig import get_path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

from tests.live_server import ROOT, LiveServer, clean_environment
from tests.wheels import build_wheel

SDK = """
from azure.data.tables import TableServiceClient

service = TableServiceClient.from_connection_string({connection_string!r})
people = service.create_table_if_not_exists("people")
people.upsert_entity({{"PartitionKey": "se", "RowKey": "ada", "Name": "Ada Lovelace", "Born": 1815}})
for entity in people.query_entities("PartitionKey eq 'se' and Born lt 1900"):
    print(entity["Name"])
"""
TEST = """
from azure.data.tables import TableServiceClient


def test_people_are_found(tablero_connection_string):
    service = TableServiceClient.from_connection_string(tablero_connection_string)
    people = service.create_table("people")
    people.create_entity({"PartitionKey": "se", "RowKey": "ada", "Born": 1815})
    assert [it["RowKey"] for it in people.query_entities("Born lt 1900")] == ["ada"]
"""
KEYS = {"PartitionKey": "se", "RowKey": "grace"}
AZURITE = {
    "collections": [
        {"name": "$TABLES_COLLECTION$", "data": [{"account": "devstoreaccount1", "table": "pioneers"}]},
        {
            "name": "devstoreaccount1$pioneers",
            "data": [{**KEYS, "properties": {**KEYS, "Name": "Grace Hopper", "Born": 1906}}],
        },
    ]
}
# beside Tablero: its lock has these for the tests
OTHERS = ("azure-data-tables", "pytest")


@dataclass
class Newcomer:
    """A new user with an empty home."""

    home: Path
    borrows: bool = False  # whether this Python's packages are the dependencies, without a download
    steps: dict[str, float] = field(default_factory=dict)  # seconds

    @property
    def bin(self) -> Path:
        return self.home / "venv/bin"

    def follow(self) -> None:
        (self.home / "cache").mkdir(mode=0o711)  # PostgreSQL runs as another user than root
        wheel = build_wheel(self.home.parent / "wheel")
        with self.step("install"):
            self.install(wheel)
        with self.server() as server:
            with self.step("connect an SDK"):
                script = SDK.format(connection_string=server.connection_string)
                assert self.run("python", "-c", script) == "Ada Lovelace\n"
            with self.step("copy Azurite's file"):
                (self.home / "azurite").mkdir()
                (self.home / "azurite/__azurite_db_table__.json").write_text(json.dumps(AZURITE))
                said = self.run("tablero", "copy", "azurite", server.account)
                assert "1 verified: equal" in said, said
            with self.step("see it in the console"):
                page = self.sign_in(server)(f"/ui/a/{server.account}/t/pioneers/")
                assert "Grace Hopper" in page
            with self.step("run a test with the fixtures"):
                (self.home / "test_people.py").write_text(TEST)
                said = self.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_people.py")
                assert "1 passed" in said, said

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.steps[name] = time.monotonic() - began
        print(f"{name:30}{self.steps[name]:7.1f} s", flush=True)

    def install(self, wheel: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", self.home / "venv"], check=True)
        if self.borrows:
            [packages] = (self.home / "venv/lib").glob("python*/site-packages")
            (packages / "borrowed.pth").write_text(get_path("purelib"))
        else:
            self.run("pip", "install", "-q", "--require-hashes", "-r", str(ROOT / ".lock/run.txt"))
        self.run("pip", "install", "-q", "--no-deps", "--no-index", str(wheel))
        if not self.borrows:
            self.run("pip", "install", "-q", *OTHERS)

    @contextmanager
    def server(self) -> Iterator[LiveServer]:
        process = subprocess.Popen(
            [self.bin / "tablero", "serve", "--listen", "127.0.0.1:0"],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        live = LiveServer(process, self.home / "data")
        try:
            with self.step("start"):
                live.wait_until_ready()
            yield live
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            live.reader.join(60)
            assert process.stdout is not None
            process.stdout.close()

    @property
    def environment(self) -> dict[str, str]:
        others = ("DJANGO_", "PYTEST_", "PYTHON", "XDG_")
        kept = {name: value for name, value in clean_environment().items() if not name.startswith(others)}
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            # for root these are outside of the home
            "TABLERO_DATA": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
        }

    def run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def sign_in(self, server: LiveServer) -> Callable[[str], str]:
        """Create the first admin by the link that the server has printed; return what opens a page."""
        opener = build_opener(HTTPCookieProcessor(CookieJar()))

        def get(path: str, data: bytes | None = None) -> str:
            with opener.open(f"{server.url}{path}", data, timeout=60) as answer:
                return unescape(answer.read().decode())

        def post(path: str, **fields: str) -> None:
            secret = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', get(path))[0]
            get(path, urlencode({"csrfmiddlewaretoken": secret, **fields}).encode())

        [(page, token)] = re.findall(r"(/ui/setup/)#token=(\S+)", "\n".join(server.output))
        post(page, token=token)
        phrase = "a phrase of many words"
        post(page, username="ada", language="en", password=phrase, repeated=phrase)
        return get


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m tests.newcomer", description=__doc__)
    parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tablero-newcomer-"))
    folder.chmod(0o711)
    try:
        newcomer = Newcomer(folder / "home")
        newcomer.home.mkdir(mode=0o711)
        newcomer.follow()
        print(f"{'all':30}{sum(newcomer.steps.values()):7.1f} s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
