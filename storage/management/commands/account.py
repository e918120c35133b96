"""The command `account`: manage storage accounts."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from storage.models import Account
from storage.operations import accounts
from storage.operations.accounts import AccountError
from storage.operations.activity import command_actor
from storage.server import migration


class Command(BaseCommand):
    help = "Add, list, change and remove storage accounts and rotate their keys, also while the server runs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", metavar="DIR", help="folder of the database and the secret (TABLERO_DATA)"
        )
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="create an account; missing keys are generated")
        add.add_argument("name")
        add.add_argument("--key1", help="base64")
        add.add_argument("--key2", help="base64")
        listing = actions.add_parser("list", help="list all accounts")
        listing.add_argument("--keys", action="store_true", help="show the keys too")
        rotate = actions.add_parser("rotate", help="regenerate one of the two keys")
        rotate.add_argument("name")
        rotate.add_argument("key", type=int, choices=(1, 2))
        actions.add_parser("disable", help="make an account refuse all requests").add_argument("name")
        actions.add_parser("enable", help="enable a disabled account").add_argument("name")
        shared_key = actions.add_parser(
            "shared-key",
            help="accept account keys and tokens signed with them (on), or only bearer tokens (off)",
        )
        shared_key.add_argument("name")
        shared_key.add_argument("state", choices=("on", "off"))
        allow = actions.add_parser(
            "allow",
            help="accept requests only from these IP addresses and networks; without any: from everywhere",
        )
        allow.add_argument("name")
        allow.add_argument("networks", nargs="*", metavar="NETWORK", help="such as 192.0.2.1 or 192.0.2.0/24")
        read_only = actions.add_parser(
            "read-only", help="refuse all writes to an account (on) or allow them (off)"
        )
        read_only.add_argument("name")
        read_only.add_argument("state", choices=("on", "off"))
        protected = actions.add_parser(
            "protected", help="prevent an account from being removed (on) or allow it (off)"
        )
        protected.add_argument("name")
        protected.add_argument("state", choices=("on", "off"))
        remove = actions.add_parser("remove", help="remove an account")
        remove.add_argument("name")
        remove.add_argument(
            "--with-tables", action="store_true", help="remove its tables with their entities too"
        )

    def handle(self, *args: Any, action: str, **arguments: Any) -> None:
        migration.migrate(self.stderr.write)
        try:
            getattr(self, f"_{action.replace('-', '_')}")(**arguments)
        except AccountError as error:
            raise CommandError(str(error)) from None
        except OperationalError as error:
            # a server process hangs and does not drop its catalog
            raise CommandError(
                f"Nothing was changed because a server or the database did not respond in time ({error}). Try again;"
                " if that fails, stop the servers of this database first."
            ) from None

    def _add(self, name: str, key1: str | None, key2: str | None, **_: Any) -> None:
        given = [accounts.decode_key(key) if key else None for key in (key1, key2)]
        self._show(accounts.add(name, *given, by=command_actor()), with_keys=True)

    def _list(self, *, keys: bool, **_: Any) -> None:
        for account in Account.objects.order_by("name"):
            self._show(account, with_keys=keys)

    def _rotate(self, name: str, key: int, **_: Any) -> None:
        sealed = accounts.rotate(name, key, by=command_actor())
        self.stdout.write(f"{name}  key{key}={accounts.encode_key(accounts.keys_of(sealed)[key - 1])}")

    def _disable(self, name: str, **_: Any) -> None:
        accounts.set_enabled(name, enabled=False, by=command_actor())
        self.stdout.write(f"{name} is disabled.")

    def _enable(self, name: str, **_: Any) -> None:
        accounts.set_enabled(name, enabled=True, by=command_actor())
        self.stdout.write(f"{name} is enabled.")

    def _shared_key(self, name: str, state: str, **_: Any) -> None:
        accounts.set_shared_key_access(name, allowed=state == "on", by=command_actor())
        self.stdout.write(
            f"{name} accepts its keys." if state == "on" else f"{name} accepts only bearer tokens."
        )

    def _allow(self, name: str, networks: list[str], **_: Any) -> None:
        accounts.set_networks(name, networks, by=command_actor())
        self.stdout.write(f"{name} accepts requests from {' and '.join(networks) or 'everywhere'}.")

    def _read_only(self, name: str, state: str, **_: Any) -> None:
        accounts.set_fields(name, {"read_only": state == "on"}, by=command_actor())
        self.stdout.write(f"{name} is read-only." if state == "on" else f"{name} accepts writes.")

    def _protected(self, name: str, state: str, **_: Any) -> None:
        accounts.set_fields(name, {"protected": state == "on"}, by=command_actor())
        self.stdout.write(f"{name} is protected." if state == "on" else f"{name} is no longer protected.")

    def _remove(self, name: str, *, with_tables: bool, **_: Any) -> None:
        accounts.remove(name, with_tables=with_tables, by=command_actor())
        self.stdout.write(f"{name} was removed.")

    def _show(self, account: Account, *, with_keys: bool) -> None:
        state = ("" if account.enabled else "  disabled") + ("" if account.shared_key_access else "  no keys")
        state += ("  read-only" if account.read_only else "") + ("  protected" if account.protected else "")
        state += f"  from {', '.join(account.networks)} only" if account.networks else ""
        self.stdout.write(f"{account.name}  since {account.created_at:%Y-%m-%d}{state}")
        if with_keys:
            for number, key in enumerate(accounts.keys_of(account), start=1):
                self.stdout.write(f"  key{number}={accounts.encode_key(key)}")
