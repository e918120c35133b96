"""The command `changes`: print the change feed of an account or a table, once or continuously."""

import argparse
import time
from datetime import datetime
from typing import Any

from storage.domain.errors import ServerBusy
from storage.domain.history.feed import FeedPage, describe_change, write_change
from storage.history import feed
from storage.history.feed import (
    NOW,
    OLDEST,
    Feed,
    Start,
)
from storage.management.command import DatabaseCommand, find_account
from storage.runtime.live_feed import INTERVAL
from storage.tables import tables


def read_start(text: str) -> Start:
    match text:
        case "now":
            return NOW
        case "oldest":
            return OLDEST
    try:
        return Start(is_now=False, since=datetime.fromisoformat(text).astimezone())
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError("give now, oldest, or a time such as 2026-11-30T18:00:00Z") from None


class Command(DatabaseCommand):
    help = "Print the changes of entities, also while the server runs: those that are kept, or with --follow new ones."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("feed", metavar="ACCOUNT[/TABLE]")
        parser.add_argument("--follow", action="store_true", help="go on with new changes until interrupted")
        parser.add_argument(
            "--json", action="store_true", help="print a JSON object per line, with its token"
        )
        start = parser.add_mutually_exclusive_group()
        start.add_argument("--after", metavar="TOKEN", help="start after the change with this token")
        start.add_argument(
            "--from",
            dest="start",
            type=read_start,
            metavar="START",
            help="now (the default with --follow), oldest (the default without), or a time",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        followed = _find_feed(options["feed"])
        is_followed: bool = options["follow"]
        after = options["after"] or options["start"] or (NOW if is_followed else OLDEST)
        while True:
            try:
                page, after = feed.read(followed, after)
            except ServerBusy:
                if not is_followed or not isinstance(after, str):
                    raise
                time.sleep(1)
                continue
            self._print_page(followed, page, after, as_json=options["json"])
            if page.has_more:
                continue
            if not is_followed:
                break
            time.sleep(INTERVAL)
        if not options["json"]:
            self.stderr.write(f"To go on from here: --after {after}")

    def _print_page(self, followed: Feed, page: FeedPage, last: str, *, as_json: bool) -> None:
        if not page.changes:
            return
        if not as_json:
            for change in page.changes:
                self.stdout.write(describe_change(change))
        else:
            for change, token in zip(page.changes, feed.tokens(followed, page, last), strict=True):
                self.stdout.write(f'{write_change(change).decode()[:-1]},"token":"{token}"}}')
        self.stdout.flush()


def _find_feed(name: str) -> Feed:
    account_name, _, table = name.partition("/")
    account = find_account(account_name)
    return Feed(account.pk, (tables.get(account, table).pk,) if table else None)
