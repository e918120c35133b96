"""The command `requests`: list refused, failed and slow requests with their explanations."""

import argparse
import time
from typing import Any, Final

from storage.management.command import DatabaseCommand, find_account, whole_number
from storage.models import RecordedRequest
from storage.requests import explanations, requests
from storage.requests.requests import RequestClass, RequestFilter

_INTERVAL: Final = 1.0  # seconds between looks at the log


class Command(DatabaseCommand):
    help = "List requests to the Table service that were refused, failed or slow, and say why."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("account", nargs="?", help="only those to this account")
        parser.add_argument(
            "--follow", action="store_true", help="write requests as they are made, until Ctrl+C"
        )
        parser.add_argument("--all", action="store_true", help="also the sample of ordinary requests")
        parser.add_argument("--code", default="", help="only this error code, such as AuthenticationFailed")
        parser.add_argument("--table", default="", help="only for this table")
        parser.add_argument(
            "--credential", default="", help="only of key1, of the fingerprint of a SAS, or of a subject"
        )
        parser.add_argument(
            "--id", default="", help="the request with this x-ms-request-id or x-ms-client-request-id"
        )
        parser.add_argument("--limit", type=whole_number(1), default=20, help="how many, default 20")

    def handle(self, *args: Any, account: str | None, **options: Any) -> None:
        conditions = RequestFilter(
            None if account is None else [find_account(account).pk],
            kind=None if options["all"] or options["id"] else RequestClass.PROBLEM,
            code=options["code"],
            table=options["table"],
            credential=options["credential"],
            identifier=options["id"],
        )
        last = requests.last_id()
        page = requests.page(conditions, top=options["limit"])[: options["limit"]]
        for request in reversed(page):
            self._write(request)
        if options["id"] and not page and not options["follow"]:
            self.stderr.write(f"The log has no request with the ID {options['id']}.")
        if options["follow"]:
            self._follow(conditions, last)

    def _follow(self, conditions: RequestFilter, last: int) -> None:
        try:
            while True:
                for request in requests.following(conditions, last):
                    self._write(request)
                    last = request.pk
                self.stdout.flush()
                time.sleep(_INTERVAL)
        except KeyboardInterrupt:
            pass

    def _write(self, request: RecordedRequest) -> None:
        status = f"{request.status or 'closed'} {request.error}".strip()
        credential = explanations.credential_name(request) or request.authentication
        slow = "  slow" if requests.is_slow(request) else ""
        self.stdout.write(
            f"{request.at:%Y-%m-%d %H:%M:%S}  {status}  {request.operation or request.method}  {request.path}  "
            f"{credential}  {request.address}  {1000 * request.seconds:.0f} ms{slow}  {request.request_id}"
        )
        for sentence in explanations.explain(request):
            self.stdout.write(f"    {sentence}")
        if request.alike:
            self.stdout.write(f"    {request.alike:,} more like this one in the same two seconds.")
