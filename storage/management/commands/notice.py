"""The command `notice`: list notices, evaluate conditions, and test e-mail."""

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from storage.management.command import DatabaseCommand, find_account
from storage.models import Account
from storage.notices import delivery, evaluation, presentation, readers
from storage.runtime import periodic


class Command(DatabaseCommand):
    help = "List notices, look for conditions now, and test e-mail, also while the server runs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        for action, description in (
            ("list", "list open notices"),
            ("check", "look for conditions now, then list open notices"),
        ):
            listing = actions.add_parser(action, help=description)
            listing.add_argument("account", nargs="?", help="only those of this account")
        actions.add_parser("mail", help="send a test").add_argument("address", help="where to")

    def handle(self, *args: Any, action: str, **arguments: Any) -> None:
        getattr(self, f"_{action}")(arguments.get("account") or arguments.get("address"))

    def _list(self, account: str | None) -> None:
        self._print(None if account is None else find_account(account))

    def _check(self, account: str | None) -> None:
        wanted = None if account is None else find_account(account)
        if not periodic.run_exclusively("notices", 0.0, evaluation.evaluate):
            raise CommandError("A server process is looking right now. Try again.")
        self._print(wanted)

    def _print(self, account: Account | None) -> None:
        for notice in readers.open_notices(account):
            seen = presentation.view(notice)
            place = seen.account or "-"
            self.stdout.write(
                f"{seen.id}  {seen.severity:7}  {place}  {seen.kind}  {seen.opened_at:%Y-%m-%d %H:%M}  {seen.text}"
            )

    def _mail(self, address: str | None) -> None:
        assert address is not None
        if settings.SMTP is None:
            raise CommandError("TABLERO_SMTP_URL and TABLERO_MAIL_FROM are not set.")
        sent_at = f"{timezone.now():%Y-%m-%d %H:%M} UTC"
        error = delivery.send_mail(address, "[Tablero] Test", f"This is a test of {sent_at}.\n")
        if error:
            raise CommandError(f"The e-mail could not be sent: {error}")
        self.stdout.write(f"Sent a test to {address}.")
