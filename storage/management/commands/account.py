"""The command `account`: manage storage accounts."""

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError
from django.db import OperationalError

from storage.account_files import account_copies, account_export, account_import
from storage.account_files.account_copies import CopyRefused, Finding
from storage.account_files.account_export import Progress
from storage.accounts import account_settings, accounts, removal, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.accounts.refusals import AccountError
from storage.activity.activity import command_actor
from storage.core.account_settings import SETTINGS, Switch
from storage.domain.refusals import Reason
from storage.domain.requests.consistency import Consistency, read_level
from storage.domain.requests.strictness import Strictness
from storage.domain.values.kinds import AccountKind
from storage.domain.values.numbers import counted, were
from storage.management.command import DatabaseCommand, find_account, find_usable_account, quote_key
from storage.models import Account
from storage.server.backups.backup import size_of

_SWITCHES: Final = {
    setting.switch.action: (setting.name, setting.switch)
    for setting in SETTINGS.values()
    if setting.switch is not None
}
_PROGRESS_SECONDS: Final = 5


def _describe_content(tables: int, entities: int) -> str:
    return f"{counted(entities, 'entity', 'entities')} in {counted(tables, 'table')}"


def _read_level(text: str) -> Consistency:
    level = read_level(text)
    if level is None:
        raise argparse.ArgumentTypeError(f"choose one of {', '.join(Consistency)}")
    return level


class Command(DatabaseCommand):
    help = (
        "Add, list, change, export, import and remove storage accounts and rotate their keys, also while the server"
        " runs."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="create an account; missing keys are generated")
        add.add_argument("name")
        add.add_argument(
            "--kind",
            choices=[kind.value for kind in AccountKind],
            default=AccountKind.STORAGE.value,
            help="compatible with Azure Table storage (the default) or with Azure Cosmos DB for Table",
        )
        add.add_argument("--key1", help="base64")
        add.add_argument("--key2", help="base64")
        copy = actions.add_parser(
            "copy", help="copy the tables of an account to a new one, of another kind if you like"
        )
        copy.add_argument("name")
        copy.add_argument("new_name")
        copy.add_argument("--kind", choices=[kind.value for kind in AccountKind], help="by default the same")
        copy.add_argument("--check", action="store_true", help="only say what would not fit")
        copy.add_argument("--skip", action="store_true", help="leave out what does not fit")
        export = actions.add_parser("export", help="write the tables and settings of an account into a file")
        export.add_argument("name")
        export.add_argument("file", metavar="FILE", help="such as shop.ndjson.gz; - for the standard output")
        export.add_argument("--with-keys", action="store_true", help="include the account keys, in the clear")
        import_ = actions.add_parser("import", help="make a new account of a file that export wrote")
        import_.add_argument("file", metavar="FILE", help="- for the standard input")
        import_.add_argument("--name", default="", help="by default the one in the file")
        import_.add_argument(
            "--kind", choices=[kind.value for kind in AccountKind], help="by default the same"
        )
        import_.add_argument(
            "--dry-run", action="store_true", help="check the file and say what would not fit"
        )
        listing = actions.add_parser("list", help="list all accounts")
        listing.add_argument("--keys", action="store_true", help="show the keys too")
        rotate = actions.add_parser("rotate", help="regenerate one of the two keys")
        rotate.add_argument("name")
        rotate.add_argument("key", type=int, choices=(1, 2))
        actions.add_parser("disable", help="make an account refuse all requests").add_argument("name")
        actions.add_parser("enable", help="enable a disabled account").add_argument("name")

        allow = actions.add_parser(
            "allow",
            help="accept requests only from these IP addresses and networks; without any: from everywhere",
        )
        allow.add_argument("name")
        allow.add_argument("networks", nargs="*", metavar="NETWORK", help="such as 192.0.2.1 or 192.0.2.0/24")
        for action, (_setting, switch) in _SWITCHES.items():
            parser = actions.add_parser(action, help=switch.help)
            parser.add_argument("name")
            parser.add_argument("state", choices=("on", "off"))
        history = actions.add_parser("history", help="set how long changes of entities are kept")
        history.add_argument("name")
        history.add_argument("days", type=int, help="0 turns history off and deletes it")
        history.add_argument(
            "--megabytes", type=int, help="what they may take on disk; by default a share of it"
        )
        consistency = actions.add_parser(
            "consistency", help="set the default consistency level; a request may ask for a weaker one"
        )
        consistency.add_argument("name")
        consistency.add_argument(
            "level", type=_read_level, metavar="LEVEL", help=f"one of {', '.join(Consistency)}"
        )
        consistency.add_argument(
            "--max-staleness",
            type=int,
            metavar="SECONDS",
            help="by how much reads may be behind at BoundedStaleness",
        )
        strictness = actions.add_parser(
            "strictness",
            help="refuse what Azure is known to refuse (azure) or serve it with a warning (friendly)",
        )
        strictness.add_argument("name")
        strictness.add_argument("strictness", choices=[it.value for it in Strictness])
        remove = actions.add_parser("remove", help="remove an account")
        remove.add_argument("name")
        remove.add_argument(
            "--with-tables", action="store_true", help="remove its tables with their entities too"
        )

    def handle(self, *args: Any, action: str, **arguments: Any) -> None:
        try:
            if action in _SWITCHES:
                self._turn(*_SWITCHES[action], **arguments)
            else:
                getattr(self, f"_{action}")(**arguments)
        except OperationalError as error:
            # a server process hangs and does not drop its catalog
            raise CommandError(
                f"Nothing was changed because a server or the database did not respond in time ({error}). Try again;"
                " if that fails, stop the servers of this database first."
            ) from None

    def _add(self, name: str, kind: str, key1: str | None, key2: str | None, **_: Any) -> None:
        primary, secondary = (sealed_keys.decode_key(key) if key else None for key in (key1, key2))
        new = NewAccount(primary, secondary, AccountKind(kind))
        self._show(accounts.add(name, new, by=command_actor()), with_keys=True)

    def _copy(self, name: str, new_name: str, kind: str | None, *, check: bool, skip: bool, **_: Any) -> None:
        source = find_usable_account(name)
        new_kind = AccountKind(kind or source.kind)
        if check:
            findings = account_copies.check(source, new_kind)
            self._tell(findings)
            if not findings:
                self.stdout.write("Everything fits.")
            return
        try:
            copied = account_copies.copy(source, new_name, new_kind, skip=skip, by=command_actor())
        except CopyRefused as refusal:
            self._tell(refusal.findings)
            raise CommandError(f"{refusal} Leave it out with --skip.") from None
        self.stdout.write(
            f"{_describe_content(copied.tables, copied.entities)} {were(copied.entities)} copied."
        )
        self._show(copied.account, with_keys=True)

    def _tell(self, findings: Iterable[Finding]) -> None:
        for it in findings:
            if it.example is None:
                self.stdout.write(f"{it.table} {it.misfit}")
            else:
                example = quote_key(it.example)
                self.stdout.write(f"{it.table}: entities that {it.misfit}: {it.number}, such as {example}")

    def _export(self, name: str, file: str, *, with_keys: bool, **_: Any) -> None:
        started = time.monotonic()
        account, is_piped = find_account(name), file == "-"
        if is_piped and sys.stdout.isatty():
            raise CommandError("An export is not shown on a terminal; name a file, or pass it on.")
        with account_export.opening(None if is_piped else Path(file), sys.stdout.buffer) as stream:
            done = account_export.export(
                account, stream, with_keys=with_keys, progress=self._progress("exported")
            )
            size = f" ({size_of(stream.tell())})" if not is_piped else ""
        (self.stderr if is_piped else self.stdout).write(
            f"{_describe_content(done.tables, done.entities)} of {name} {were(done.entities)} exported to {file}{size}"
            f" in {time.monotonic() - started:.1f} seconds."
        )

    def _import(self, file: str, name: str, kind: str | None, *, dry_run: bool, **_: Any) -> None:
        started = time.monotonic()
        new_kind = None if kind is None else AccountKind(kind)
        with account_import.opening(None if file == "-" else Path(file), sys.stdin.buffer) as stream:
            checked = account_import.check(stream, name, new_kind, progress=self._progress("checked"))
            self._tell(checked.findings)
            if dry_run:
                content = _describe_content(checked.tables, checked.entities)
                said = "not everything fits" if checked.fitting.refused else "everything fits"
                self.stdout.write(f"{content} would become {checked.name}, {checked.kind}: {said}.")
                return
            made = account_import.load(checked, by=command_actor(), progress=self._progress("imported"))
        seconds = time.monotonic() - started
        self.stdout.write(
            f"{_describe_content(made.tables, made.entities)} {were(made.entities)} imported in {seconds:.1f} seconds."
        )
        self._show(made.account, with_keys=not checked.header.keys)

    def _progress(self, done: str) -> Progress:
        """Return a callback that reports the number of entities every few seconds."""
        last = time.monotonic()

        def show(number: int) -> None:
            nonlocal last
            if time.monotonic() - last >= _PROGRESS_SECONDS:
                last = time.monotonic()
                self.stderr.write(f"{counted(number, 'entity', 'entities')} {done} ...")

        return show

    def _list(self, *, keys: bool, **_: Any) -> None:
        for account in accounts.listed():
            self._show(account, with_keys=keys)

    def _rotate(self, name: str, key: int, **_: Any) -> None:
        sealed = accounts.rotate(name, key, by=command_actor())
        self.stdout.write(f"{name}  key{key}={sealed_keys.encode_key(sealed_keys.key_of(sealed, key))}")

    def _disable(self, name: str, **_: Any) -> None:
        self._set(f"{name} is disabled.", name, enabled=False)

    def _enable(self, name: str, **_: Any) -> None:
        self._set(f"{name} is enabled.", name, enabled=True)

    def _turn(self, setting: str, switch: Switch, name: str, state: str, **_: Any) -> None:
        is_on = state == "on"
        done = switch.on if is_on else switch.off
        self._set(done.format(name=name), name, **{setting: is_on})

    def _allow(self, name: str, networks: list[str], **_: Any) -> None:
        origins = " and ".join(networks) or "everywhere"
        self._set(f"{name} accepts requests from {origins}.", name, networks=networks)

    def _history(self, name: str, days: int, megabytes: int | None, **_: Any) -> None:
        done = (
            f"{name} keeps its history for {counted(days, 'day')}." if days else f"{name} keeps no history."
        )
        size = None if megabytes is None else megabytes << 20
        self._set(done, name, history_days=days, history_bytes=size)

    def _consistency(self, name: str, level: Consistency, max_staleness: int | None, **_: Any) -> None:
        bound = {} if max_staleness is None else {"max_staleness": max_staleness}
        self._set(f"{name} has the consistency level {level}.", name, consistency=level.value, **bound)

    def _strictness(self, name: str, strictness: str, **_: Any) -> None:
        is_strict = strictness == Strictness.AZURE
        done = "is as strict as Azure" if is_strict else "serves what it can"
        self._set(f"{name} {done}.", name, strictness=strictness)

    def _set(self, done: str, name: str, **fields: Any) -> None:
        account = accounts.by_name(name)
        if account is None:
            raise AccountError(Reason.NO_ACCOUNT, account=name)
        account_settings.change(account, by=command_actor(), **fields)
        self.stdout.write(done)

    def _remove(self, name: str, *, with_tables: bool, **_: Any) -> None:
        removal.remove(name, with_tables=with_tables, by=command_actor())
        self.stdout.write(f"{name} was removed.")

    def _show(self, account: Account, *, with_keys: bool) -> None:
        facts = [
            account.kind if account.kind != AccountKind.STORAGE else "",
            "" if account.enabled else "disabled",
            *(
                switch.shown_on if getattr(account, setting) else switch.shown_off
                for setting, switch in _SWITCHES.values()
            ),
            account.consistency if account.consistency != Consistency.STRONG else "",
            "as strict as Azure" if account.strictness == Strictness.AZURE else "",
            f"from {', '.join(account.networks)} only" if account.networks else "",
        ]
        state = "".join(f"  {fact}" for fact in facts if fact)
        self.stdout.write(f"{account.name}  since {account.created_at:%Y-%m-%d}{state}")
        if with_keys:
            for number, key in enumerate(sealed_keys.keys_of(account), start=1):
                self.stdout.write(f"  key{number}={sealed_keys.encode_key(key)}")
