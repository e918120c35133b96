"""Make the database of a release, which later versions are tested with.

The command is `python3 -m tests.tools.releases.make CHECKOUT`.

CHECKOUT is a copy of the source of the release, whose dependencies this Python has. Its server is started, filled
through its public doors, and read; then its database is dumped. The folder of the version beside this file gets both.
"""

import argparse
import gzip
import json
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

from storage.server import installation
from tests.live_server import start_server
from tests.tools.releases import contents
from tests.tools.releases.doors import RELEASES, Doors, manage


def main():
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.releases.make", description=__doc__)
    parser.add_argument("checkout", metavar="CHECKOUT", type=Path)
    checkout = parser.parse_args().checkout.absolute()
    data = Path(tempfile.mkdtemp(prefix="tablero-release-"))
    try:
        version, dump, made = make(checkout, data)
    finally:
        shutil.rmtree(data)
    folder = RELEASES / version
    folder.mkdir(exist_ok=True)
    text = json.dumps(made, indent=1)
    for name, content in (("database.sql.gz", dump), ("made.json.gz", text.encode())):
        (folder / name).write_bytes(gzip.compress(content))
    print(f"{folder}: {sum(path.stat().st_size for path in folder.iterdir()) / 1024:.0f} KiB")


def make(checkout, data):
    with start_server(data, checkout=checkout) as live:
        version = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["version"]
        passwords = {
            name: manage(checkout, data, "user", "add", name, *options).partition("password=")[2].strip()
            for name, *options in (("maria", "--admin"), ("jo",), ("ada",))
        }
        token = manage(
            checkout, data, "token", "add", "maria", "ci", "--scope", "manage", "--days", "0"
        ).strip()
        doors = Doors(live.url, token, passwords)
        made = contents.fill(doors)
        made |= {"token": token, "passwords": passwords, "secret": (data / "secret").read_text()}
        made["found"] = contents.read(doors, made)
        pg_dump = [installation.packaged_programs() / "pg_dump", "--no-owner", "--no-privileges"]
        dump = subprocess.run(
            [*pg_dump, "--host", data / "run", "--username", "tablero", "tablero"],
            stdout=subprocess.PIPE,
            check=True,
        )
    return version, dump.stdout, made


if __name__ == "__main__":
    main()
