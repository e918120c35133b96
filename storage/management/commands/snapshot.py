"""The command `snapshot`: take, list, restore and delete snapshots of an account."""

import argparse
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils import timezone

from storage.activity.activity import command_actor
from storage.branches import snapshot_restores
from storage.branches.snapshot_restores import RestoreRequest
from storage.core.lifetimes import read_lifetime
from storage.domain.entities.restoring import TableAction
from storage.domain.values.numbers import counted, were
from storage.management.command import DatabaseCommand, find_usable_account
from storage.models import Account, Snapshot
from storage.snapshots import snapshots


class Command(DatabaseCommand):
    help = "Take, list, restore and delete snapshots of an account, also while the server runs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list", help="list the snapshots of an account").add_argument("account")
        take = actions.add_parser("take", help="take a snapshot")
        take.add_argument("account")
        take.add_argument("name")
        take.add_argument("--table", action="append", dest="tables", help="only this one; can be repeated")
        take.add_argument("--ttl", metavar="TIME", help="when it is deleted, such as 8h or 2d")
        restore = actions.add_parser("restore", help="make tables what they were; takes a snapshot first")
        restore.add_argument("account")
        restore.add_argument("name")
        restore.add_argument("--table", action="append", dest="tables", help="only this one; can be repeated")
        restore.add_argument("--policies", action="store_true", help="restore the stored access policies too")
        restore.add_argument("--settings", action="store_true", help="restore the service properties too")
        restore.add_argument(
            "--delete-new-tables", action="store_true", help="delete tables that are newer than the snapshot"
        )
        restore.add_argument("--dry-run", action="store_true", help="only say what would change")
        delete = actions.add_parser("delete", help="delete a snapshot")
        delete.add_argument("account")
        delete.add_argument("name")

    def handle(self, *args: Any, action: str, account: str, **arguments: Any) -> None:
        getattr(self, f"_{action}")(find_usable_account(account), **arguments)

    def _list(self, account: Account, **_: Any) -> None:
        for snapshot in snapshots.listed(account):
            self._show(snapshot)

    def _take(self, account: Account, name: str, tables: list[str] | None, ttl: str | None, **_: Any) -> None:
        expires_at = timezone.now() + read_lifetime(ttl) if ttl else None
        self._show(snapshots.take(account, name, by=command_actor(), tables=tables, expires_at=expires_at))

    def _restore(
        self,
        account: Account,
        name: str,
        *,
        tables: list[str] | None,
        policies: bool,
        settings: bool,
        delete_new_tables: bool,
        dry_run: bool,
        **_: Any,
    ) -> None:
        snapshot = snapshots.get(account, name)
        request = RestoreRequest(
            tables=tables, with_policies=policies, with_settings=settings, deletes_new=delete_new_tables
        )
        if dry_run:
            previews = snapshot_restores.preview(snapshot, request).tables
            if not previews:
                self.stdout.write("Nothing to restore.")
            for it in previews:
                what = "" if it.action is TableAction.KEEP else f"{it.action}, "
                self.stdout.write(
                    f"{it.name}  {what}{it.inserted} to insert, {it.changed} to change, {it.deleted} to delete"
                )
            return
        restored = snapshot_restores.restore(snapshot, request, by=command_actor())
        before = restored.before.name if restored.before is not None else ""
        done = f"{counted(restored.written, 'entity', 'entities')} {were(restored.written)} restored"
        self.stdout.write(f"{done}; the state before is {before}.")
        if restored.skipped:
            self.stdout.write(
                f"{restored.skipped:,} {were(restored.skipped)} skipped because of changes during the restore."
            )

    def _delete(self, account: Account, name: str, **_: Any) -> None:
        snapshots.delete(snapshots.get(account, name), by=command_actor())
        self.stdout.write(f"{name} was deleted.")

    def _show(self, snapshot: Snapshot) -> None:
        entities, size = snapshots.totals(snapshot)
        about = f"{counted(entities, 'entity', 'entities')}, {filesizeformat(size)}"
        until = f"  until {snapshot.expires_at:%Y-%m-%d %H:%M}" if snapshot.expires_at else ""
        self.stdout.write(f"{snapshot.name}  {snapshot.taken_at:%Y-%m-%d %H:%M}  {about}{until}")
