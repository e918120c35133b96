"""The command `token`: create, list and revoke API tokens."""

import argparse
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from console.management.users import find_user
from storage.activity.activity import command_actor
from storage.domain.access.roles import Scope
from storage.management.command import DatabaseCommand, find_account, whole_number
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest

_LONGEST_DAYS: Final = 36_500
_LONGEST_NAME: Final = 64


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST_NAME:
        raise argparse.ArgumentTypeError(f"must have 1 to {_LONGEST_NAME} visible characters")
    return text


class Command(DatabaseCommand):
    help = "Create, list and revoke tokens of the management API. Works while the server runs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="create a token; it is shown only once")
        add.add_argument("user", help="the user whose permissions it has")
        add.add_argument("name", type=_name, help="what uses the token")
        add.add_argument("--scope", choices=[it.value for it in Scope], default=Scope.READ.value)
        add.add_argument("--account", help="limit the token to this account")
        add.add_argument(
            "--days",
            type=whole_number(0, _LONGEST_DAYS),
            default=90,
            help="days until it expires; 0 for never",
        )
        actions.add_parser("list", help="list all tokens that are not revoked")
        revoke = actions.add_parser("revoke", help="revoke a token")
        revoke.add_argument("user")
        revoke.add_argument("name")

    def handle(self, *args: Any, action: str, **arguments: Any) -> None:
        getattr(self, f"_{action}")(**arguments)

    def _add(self, user: str, name: str, scope: str, account: str | None, days: int, **_: Any) -> None:
        end = timezone.now() + timedelta(days=days) if days else None
        wanted = TokenRequest(name, Scope(scope), None if account is None else find_account(account), end)
        secret, _token = api_tokens.issue(find_user(user), wanted, by=command_actor())
        self.stdout.write(secret)

    def _list(self, **_: Any) -> None:
        for token in api_tokens.listed():
            where = "" if token.account is None else f"account={token.account}"
            end = "" if token.expires_at is None else f"until={token.expires_at:%Y-%m-%d}"
            parts = (token.user.username, token.name, f"{token.prefix}…", token.scope, where, end)
            self.stdout.write("  ".join(part for part in parts if part))

    def _revoke(self, user: str, name: str, **_: Any) -> None:
        tokens = list(api_tokens.for_user(find_user(user)).filter(name=name))
        if not tokens:
            raise CommandError(f"{user} has no token {name}.")
        for token in tokens:
            api_tokens.revoke(token, by=command_actor())
        self.stdout.write(f"Revoked {name}.")
