"""`python3 -m tests.tools.recordings FILE|FOLDER...`: see README.md."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.live_server import ACCOUNT, KEY, start_server
from tests.wire.client import Endpoint

from .comparison import Rules, read_known
from .reading import Unreadable, find, read
from .replay import Accounts, delete_tables, replay
from .report import Report

COSMOS_ACCOUNT = "cosmosrecordings"


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    with _accounts(options) as accounts:
        report = run(options.paths, accounts, shows_known=options.known, most=options.most)
    print(report.table())
    return 1 if report.unlisted else 0


def run(
    paths: list[Path], accounts: Accounts, *, shows_known: bool = False, most: int = sys.maxsize
) -> Report:
    rules, report = Rules(), Report(read_known(), shows_known=shows_known, most=most)
    for path in find(paths):
        try:
            recording = read(path)
        except Unreadable as reason:
            report.unreadable += 1
            print(f"not read: {reason}", file=sys.stderr)
            continue
        for index, replayed in enumerate(replay(recording, accounts, rules)):
            report.add(recording.name, index, replayed)
        report.recordings += 1
    for endpoint in (accounts.storage, accounts.cosmos):
        delete_tables(endpoint)
    return report


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.recordings", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE|FOLDER")
    parser.add_argument(
        "--storage", metavar="URL", help="an account of a running server, whose tables are deleted"
    )
    parser.add_argument("--cosmos", metavar="URL", help="one of the kind cosmos")
    parser.add_argument("--key", default=KEY, help="of both")
    parser.add_argument(
        "--most", type=int, default=sys.maxsize, metavar="N", help="show N of a kind, not all"
    )
    parser.add_argument("--known", action="store_true", help="show also those that are listed as known")
    options = parser.parse_args(arguments)
    if bool(options.storage) != bool(options.cosmos):
        parser.error("--storage and --cosmos belong together")
    return options


@contextmanager
def _accounts(options: argparse.Namespace) -> Iterator[Accounts]:
    """Yield the given accounts, or the two of a server that is started for the run."""
    if options.storage:
        yield Accounts(*(_endpoint(url, options.key) for url in (options.storage, options.cosmos)))
        return
    with tempfile.TemporaryDirectory() as folder, start_server(Path(folder)) as server:
        server.change_accounts("add", COSMOS_ACCOUNT, "--kind", "cosmos", "--key1", KEY)
        yield Accounts(*(_endpoint(f"{server.url}/{name}", KEY) for name in (ACCOUNT, COSMOS_ACCOUNT)))


def _endpoint(url: str, key: str) -> Endpoint:
    return Endpoint(url.rstrip("/"), url.rstrip("/").rpartition("/")[2], key, foreign=False)


if __name__ == "__main__":
    sys.exit(main())
