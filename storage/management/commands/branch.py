"""The command `branch`: create, list and reset branches of an account."""

import argparse
from typing import Any

from django.utils import timezone

from storage.accounts import sealed_keys
from storage.accounts.refusals import AccountError
from storage.activity.activity import command_actor
from storage.branches import branches, snapshot_restores
from storage.branches.branches import BranchRequest
from storage.core.lifetimes import read_lifetime
from storage.domain.entities.masking import MaskingError, read_rules
from storage.domain.filters.ast import Filter
from storage.domain.refusals import Reason
from storage.domain.values import dialects
from storage.domain.values.numbers import counted, were
from storage.editing.filters.diagnosis import parse_filter
from storage.management.command import DatabaseCommand, find_usable_account
from storage.models import Account
from storage.snapshots import snapshots


class Command(DatabaseCommand):
    help = "Make, list and reset branches of an account, also while the server runs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list", help="list the branches of an account").add_argument("account")
        create = actions.add_parser("create", help="make an account with the tables of another")
        create.add_argument("account")
        create.add_argument("name", help="of the branch")
        create.add_argument("--snapshot", help="make it of a snapshot instead of the present")
        create.add_argument("--ttl", metavar="TIME", help="when it is frozen and deleted, such as 8h or 2d")
        create.add_argument(
            "--table",
            action="append",
            dest="tables",
            metavar="TABLE[:FILTER]",
            help="copy only this one, or those of its entities that match; can be repeated",
        )
        create.add_argument(
            "--mask",
            action="append",
            default=[],
            dest="masks",
            metavar="TABLE.PROPERTY=RULE",
            help="hash, name, email, phone, blank, constant:TEXT or remove; can be repeated",
        )
        actions.add_parser("reset", help="make a branch what it was when it began").add_argument("account")

    def handle(self, *args: Any, action: str, account: str, **arguments: Any) -> None:
        getattr(self, f"_{action}")(find_usable_account(account), **arguments)

    def _list(self, account: Account, **_: Any) -> None:
        for branch in branches.listed(account):
            origin = branch.snapshot_name or f"{branch.at:%Y-%m-%d %H:%M}"
            expires_at = branch.account.expires_at
            until = f"  until {expires_at:%Y-%m-%d %H:%M}" if expires_at else ""
            self.stdout.write(f"{branch.account.name}  of {origin}{until}")

    def _create(
        self,
        account: Account,
        name: str,
        snapshot: str | None,
        ttl: str | None,
        tables: list[str] | None,
        masks: list[str],
        **_: Any,
    ) -> None:
        request = BranchRequest(
            name,
            snapshot=snapshots.get(account, snapshot) if snapshot else None,
            filters=None if tables is None else dict(map(_read_table, tables)),
            rules={table: read_rules(rules) for table, rules in _read_masks(masks).items()},
            expires_at=timezone.now() + read_lifetime(ttl) if ttl else None,
        )
        made = branches.create(account, request, by=command_actor())
        copied = f"{counted(made.entities, 'entity', 'entities')} in {counted(made.tables, 'table')}"
        self.stdout.write(f"{copied} {were(made.entities)} copied to {name}.")
        for it in made.originals:
            self.stdout.write(f"{it.table}.{it.property} has {counted(it.entities, 'original value')}.")
        if made.originals:
            self.stdout.write(f"{name} stays frozen; mask these properties, or enable it as it is.")
        for number, key in enumerate(sealed_keys.keys_of(made.account), start=1):
            self.stdout.write(f"  key{number}={sealed_keys.encode_key(key)}")

    def _reset(self, account: Account, **_: Any) -> None:
        branch = branches.find(account)
        if branch is None:
            raise AccountError(Reason.NO_BRANCH, account=account.name)
        restored = snapshot_restores.reset(branch, by=command_actor())
        reset = f"{counted(restored.written, 'entity', 'entities')} {were(restored.written)} reset"
        self.stdout.write(f"{reset} in {restored.seconds:.1f} s.")


def _read_table(text: str) -> tuple[str, Filter | None]:
    name, _, written = text.partition(":")
    return name, parse_filter(written, None, dialects.STORAGE) if written else None


def _read_masks(masks: list[str]) -> dict[str, dict[str, str]]:
    rules: dict[str, dict[str, str]] = {}
    for text in masks:
        place, _, rule = text.partition("=")
        table, _, name = place.rpartition(".")
        if not table or not rule:
            raise MaskingError(Reason.MASKING_RULE_MALFORMED, text=text)
        rules.setdefault(table, {})[name] = rule
    return rules
