"""The command `rehearse`: start and stop rehearsals of failures, and say what clients did."""

import argparse
import json
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError

from storage.activity.activity import command_actor
from storage.domain.values.numbers import counted, were
from storage.management.command import DatabaseCommand, find_usable_account
from storage.models import Account, Rehearsal
from storage.rehearsal import rehearsals
from storage.rehearsal.evidence import show_text
from storage.rehearsal.report import Severity, dump_report, make_report
from storage.rehearsal.summaries import RehearsalSummary, dump_summary, summarize

_FAULTS: Final = 1  # exit status of a report with findings of severity fault
_INTERVAL: Final = 0.5  # seconds between looks at a rehearsal
_LISTED: Final = 20
_NAMED: Final = 3  # requests of a finding


class Command(DatabaseCommand):
    help = (
        "Rehearse failures in an account, such as throttling, lost answers and short pages, also while the server runs,"
        " and say what its clients did with them. The exit status is 1 if a report has faults, and 2 for an error."
    )
    error_status = 2

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("account")
        parser.add_argument(
            "name", metavar="set", nargs="?", help="the set of rules; without one, the sets are listed"
        )
        parser.add_argument("--for", dest="duration", metavar="TIME", help="90s, 10m or 2h; default 1h")
        parser.add_argument("--seed", type=int, help="the same seed gives the same failures; default random")
        parser.add_argument("--table", default="", help="only requests to this table")
        parser.add_argument(
            "--scale", type=float, default=1.0, help="factor of the rates at which rules begin to throttle"
        )
        parser.add_argument("--rules", metavar="FILE", help="rules in JSON, instead of those of a set")
        parser.add_argument(
            "--wait", action="store_true", help="wait for the end, or for Ctrl+C, which stops it, and report"
        )
        parser.add_argument("--stop", action="store_true", help="stop the running rehearsal")
        parser.add_argument("--report", action="store_true", help="say what clients did in the latest one")
        parser.add_argument("--list", action="store_true", help="list the latest rehearsals")
        parser.add_argument("--json", action="store_true", help="write JSON")

    def handle(
        self, *args: Any, account: str, name: str | None, rules: str | None, json: bool, **options: Any
    ) -> None:
        self._as_json = json
        chosen = find_usable_account(account)
        asks = [name for name in ("stop", "report", "list") if options[name]]
        starts = name is not None or rules is not None
        if starts and asks:
            raise CommandError(f"Start a rehearsal, or use --{asks[0]}.")
        if starts:
            self._start(chosen, name or _name_of(str(rules)), rules, **options)
        elif options["list"]:
            self._list(chosen)
        elif asks:
            self._stop_or_report(chosen, **options)
        else:
            self._show_sets(chosen)

    def _start(
        self,
        account: Account,
        name: str,
        rules: str | None,
        *,
        duration: str | None,
        seed: int | None,
        table: str,
        scale: float,
        wait: bool,
        **_: Any,
    ) -> None:
        started = rehearsals.start(
            account,
            name,
            rules=None if rules is None else _read_rules(rules),
            table=table,
            seed=seed,
            scale=scale,
            duration=rehearsals.DURATION if duration is None else rehearsals.read_duration(duration),
            by=command_actor(),
        )
        if not (self._as_json and wait):
            text = "" if rules is not None else rehearsals.find_set(account, name).text
            self._show_started(started, text, waits=wait)
        if wait:
            self._wait(started)
            self._report(started)

    def _show_started(self, started: Rehearsal, text: str, *, waits: bool) -> None:
        if self._as_json:
            self._write_json(dump_summary(*summarize([started])))
            return
        where = f"the table {started.table_name} of " if started.table_name else ""
        self.stdout.write(
            f"{started.set_name} is rehearsed in {where}{started.account.name} until"
            f" {started.ends_at:%Y-%m-%d %H:%M:%S} UTC, seed {started.seed}."
        )
        if text:
            self.stdout.write(text)
        how = "Ctrl+C" if waits else f"rehearse {started.account.name} --stop --report"
        self.stdout.write(f"To stop it and see what clients did: {how}")
        self.stdout.flush()

    def _wait(self, started: Rehearsal) -> None:
        """Wait until a rehearsal ends; stop it when the command is interrupted or terminated."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            while rehearsals.ended_at(started) is None:
                time.sleep(_INTERVAL)
                started.refresh_from_db()
        except KeyboardInterrupt:
            rehearsals.stop(started, by=command_actor())

    def _stop_or_report(self, account: Account, *, stop: bool, report: bool, **_: Any) -> None:
        latest = rehearsals.running(account) if stop else rehearsals.of_account(account).first()
        if latest is None:
            raise CommandError(f"No rehearsal {'is running' if stop else 'was started'} in {account.name}.")
        if stop:
            rehearsals.stop(latest, by=command_actor())
            if not report:
                self._show_stopped(*summarize([latest]))
        if report:
            self._report(latest)

    def _show_stopped(self, summary: RehearsalSummary) -> None:
        if self._as_json:
            self._write_json(dump_summary(summary))
        else:
            self.stdout.write(f"{summary.set} was stopped after {_count(summary.requests, summary.faulted)}.")

    def _list(self, account: Account) -> None:
        summaries = summarize(rehearsals.of_account(account)[:_LISTED])
        if self._as_json:
            self._write_json([dump_summary(summary) for summary in summaries])
            return
        for it in summaries:
            table = f"  table {it.table}" if it.table else ""
            self.stdout.write(
                f"{it.started_at:%Y-%m-%d %H:%M:%S}  {it.state}  {it.set}  seed {it.seed}{table}  "
                f"{_count(it.requests, it.faulted)}"
            )

    def _show_sets(self, account: Account) -> None:
        sets = rehearsals.sets(account)
        if self._as_json:
            self._write_json([{"name": it.name, "description": it.text} for it in sets])
            return
        width = max(len(it.name) for it in sets)
        for it in sets:
            self.stdout.write(f"{it.name:{width}}  {it.text}".rstrip())

    def _report(self, rehearsal: Rehearsal) -> None:
        """Write the report on a rehearsal; exit with a status for faults."""
        report = dump_report(make_report(rehearsal))
        if self._as_json:
            self._write_json(report)
        else:
            for line in _describe(rehearsal, report):
                self.stdout.write(show_text(line))
        if _faults(report):
            raise SystemExit(_FAULTS)

    def _write_json(self, content: Any) -> None:
        self.stdout.write(json.dumps(content, indent=2, ensure_ascii=False))


def _name_of(path: str) -> str:
    """Return the name of a file in the form of a set's name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", Path(path).stem)[:64]


def _read_rules(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise CommandError(f"{path} is not JSON: {error}.") from None


def _count(requests: int, faulted: int) -> str:
    return f"{counted(requests, 'request')}, of which {faulted:,} {were(faulted)} struck"


def _faults(report: Mapping[str, Any]) -> int:
    return sum(
        finding["severity"] == Severity.FAULT
        for client in report["clients"]
        for finding in client["findings"]
    )


def _describe(rehearsal: Rehearsal, report: Mapping[str, Any]) -> Iterator[str]:
    title = f"{rehearsal.set_name} (seed {rehearsal.seed})"
    running = "" if report["is_final"] else ", which still runs"
    yield f"{title} in {rehearsal.account.name}{running}: {_count(report['requests'], report['faulted'])}."
    for client in report["clients"]:
        yield ""
        credential = f", {client['credential']}" if client["credential"] else ""
        yield f"{client['agent'] or 'Unnamed client'}{credential}: {_count(client['requests'], client['faulted'])}"
        for finding in client["findings"]:
            yield f"  {finding['severity']}: {finding['text']}{_times(finding['count'])}"
            if finding["remedy"]:
                yield f"    {finding['remedy']}"
            yield f"    x-ms-request-id: {_name_requests(finding['requests'])}"
        if not client["findings"]:
            yield "  Nothing was found."
    if report["clients"]:
        yield ""
    yield from _compare(report["compared_with"])
    faults = _faults(report)
    if faults:
        yield f"Not held under {title}: {counted(faults, 'fault')}."
    elif report["held"]:
        yield f"Held under {title}."
    else:
        yield f"Nothing was requested under {title}."


def _name_requests(ids: Sequence[str]) -> str:
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _times(count: int) -> str:
    return f" ({count:,} times)" if count > 1 else ""


def _compare(comparison: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what differs from the rehearsal before."""
    if comparison is None:
        return
    for name, words in (("new", "New since"), ("gone", "Gone since")):
        for finding in comparison[name]:
            yield f"{words} the rehearsal before: {finding['kind']}, {finding['agent'] or 'unnamed client'}"
