"""The command `copy`: copy tables from another table service to an account of this server, or back."""

import argparse
import os
import time
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError

from storage.activity.activity import command_actor
from storage.copies import copy_jobs
from storage.copies.copy_jobs import COPY_OUT_JOB, Credentials
from storage.copies.copying import CopyOptions
from storage.domain.values.numbers import counted
from storage.jobs import files, jobs, running
from storage.jobs.states import JobStatus, Wish
from storage.management.command import DatabaseCommand, find_usable_account, whole_number
from storage.models import Account, Job
from storage.remote.azurite import FILE_NAME
from storage.remote.endpoints import looks_remote
from storage.runtime.job_runner import KINDS

_EVERY: Final = 1.0  # seconds between two lines of progress
_VARIABLE: Final = "env:"


class Command(DatabaseCommand):
    help = (
        "Copy tables from an account of Azure, Cosmos DB for Table, Azurite or another server of Tablero to an account"
        " of this server, or back, also while the server runs. The other side is a connection string, a URL with a SAS,"
        " a URL and --bearer, or a file of Azurite; env:NAME takes it from an environment variable, where other users"
        " of the machine do not see it. A second copy goes on where the first one stopped, or copies what has changed."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("source", metavar="SOURCE", help="an account of this server, or another service")
        parser.add_argument("target", metavar="TARGET", help="the other of these two")
        parser.add_argument(
            "--table",
            metavar="PATTERN",
            action="append",
            dest="tables",
            help="only tables whose names match, such as 'log*'; can be repeated",
        )
        parser.add_argument(
            "--rename", metavar="TABLE=NAME", action="append", default=[], help="the name at the target"
        )
        parser.add_argument(
            "--filter", default="", help="only these entities, such as \"PartitionKey eq 'se'\""
        )
        parser.add_argument(
            "--rate", type=whole_number(0, 1_000_000), default=0, help="entities per second, at most"
        )
        parser.add_argument(
            "--delete", action="store_true", help="delete what the target has and the source does not"
        )
        parser.add_argument(
            "--full",
            action="store_true",
            help="compare everything, not only what has changed since the last copy",
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what would be copied")
        parser.add_argument(
            "--no-policies", action="store_true", help="leave the stored access policies of the target alone"
        )
        parser.add_argument(
            "--no-properties", action="store_true", help="leave the service properties of the target alone"
        )
        parser.add_argument("--no-verify", action="store_true", help="do not compare both sides at the end")
        parser.add_argument("--bearer", default="", help="a bearer token for the other service, or env:NAME")
        parser.add_argument(
            "--feed-token",
            default="",
            help="of another server: a token of its management API, or env:NAME, with which later copies read"
            " its change feed",
        )
        parser.add_argument(
            "--file-account", default="", metavar="NAME", help="the account in a file of Azurite with several"
        )
        parser.add_argument(
            "--job", action="store_true", help="leave the copy to the server, as a job: see the command job"
        )

    def handle(self, *args: Any, source: str, target: str, **options: Any) -> None:
        source, target = _resolve(source), _resolve(target)
        copy_options = _read_options(options)
        if _is_outside(source) == _is_outside(target):
            raise CommandError("One of the two must be an account of this server, and the other must not.")
        is_outgoing = _is_outside(target)
        account = find_usable_account(source if is_outgoing else target)
        other = target if is_outgoing else source
        by = command_actor()
        if looks_remote(other):
            credentials = Credentials(other, _resolve(options["bearer"]), _resolve(options["feed_token"]))
            request = copy_jobs.request(
                account, credentials, copy_options, is_outgoing=is_outgoing, is_unlimited=True
            )
            job = jobs.start_requested(request, by=by)
        elif is_outgoing:
            raise CommandError(
                "Azurite's file can only be read. To write to Azurite, start it and name its URL."
            )
        else:
            job = self._start_from_file(account, Path(other), copy_options, options["file_account"])
        if options["job"]:
            self.stdout.write(f"Job {job.pk} copies the tables. Look at it with: job show {job.pk}")
            return
        self._describe(self._follow(job))

    def _start_from_file(self, account: Account, path: Path, copy_options: CopyOptions, name: str) -> Job:
        path = path / FILE_NAME if path.is_dir() else path
        by = command_actor()
        try:
            with path.open("rb") as stream:
                file = files.create(path.name, account=account, by=by)
                files.upload(file, iter(lambda: stream.read(files.PIECE), b""))
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
        try:
            return copy_jobs.start_from_file(account, file, name, copy_options, by=by)
        except Exception:
            files.discard(file)
            raise

    def _follow(self, job: Job) -> Job:
        """Wait for the end of a job, running it in this process unless a server does."""
        last = time.monotonic()

        def rest(seconds: float) -> bool:
            nonlocal last
            if time.monotonic() - last >= _EVERY and self.stderr.isatty():
                last = time.monotonic()
                current = jobs.get(job.pk)
                self.stderr.write(counted(current.done if current else 0, "entity", "entities"), ending="\r")
            return False

        try:
            while job.ended_at is None and (job.status != JobStatus.PAUSED or job.wish != Wish.NONE):
                if not running.run(job.pk, KINDS, rest):
                    time.sleep(_EVERY / 4)
                job.refresh_from_db()
                rest(0)
        except KeyboardInterrupt:
            raise CommandError(
                f"The server goes on with the job {job.pk}. Without a server: job wait {job.pk}. To end it: job cancel"
                f" {job.pk}."
            ) from None
        return job

    def _describe(self, job: Job) -> None:
        dry_run, is_outgoing = job.arguments["options"]["dry_run"], job.kind == COPY_OUT_JOB.name
        tables = copy_jobs.tables_of(job)
        for it in tables:
            self.stdout.write(_describe_table(it, dry_run=dry_run, is_outgoing=is_outgoing))
        for failure in jobs.failures_of(job):
            self.stdout.write(f"not copied: {failure.subject}: {failure.refusal}")
        if job.failed > len(job.failures):
            self.stdout.write(f"and {job.failed - len(job.failures):,} more")
        error = jobs.error_of(job)
        if job.status != JobStatus.DONE:
            why = "" if error is None else f" {error}"
            raise CommandError(
                f"The job {job.pk} is not done: its status is {job.status}.{why} Run the same command again to go on"
                " where it stopped."
            )
        seconds = (job.ended_at - job.started_at).total_seconds() if job.ended_at and job.started_at else 0
        what = "would be read" if dry_run else "was read" if job.done == 1 else "were read"
        speed = f" ({job.done / seconds:,.0f} per second)" if seconds >= 1 else ""
        read = f"{counted(job.done, 'entity', 'entities')} of {counted(len(tables), 'table')}"
        self.stdout.write(f"{read} {what} in {seconds:.1f} seconds{speed}.")
        if any(it["verified"] is False for it in tables) or job.failed:
            raise CommandError(
                "The two sides are not equal. Copy again, which also reads what has changed at the source meanwhile."
            )


def _describe_table(table: dict[str, Any], *, dry_run: bool, is_outgoing: bool) -> str:
    name = (
        table["source"] if table["source"] == table["target"] else f"{table['source']} -> {table['target']}"
    )
    parts = [f"{table['read']:,} {'read' if table['is_full'] else 'changed since the last copy'}"]
    for count in ("inserted", "changed", "unchanged", "deleted", "rejected"):
        if table[count]:
            # another service does not tell which of them existed
            word = "written" if is_outgoing and count == "changed" else count
            parts.append(f"{table[count]:,} {'to be ' if dry_run and count != 'unchanged' else ''}{word}")
    if table["verified"] is not None:
        is_equal = "equal" if table["verified"] and not table["extra"] else ""
        numbers = {
            "differ": table["differing"],
            "are missing": table["missing"],
            "the source does not have": table["extra"],
        }
        differences = ", ".join(f"{number:,} {what}" for what, number in numbers.items() if number)
        parts.append(f"{table['entities']:,} verified: {is_equal or differences}")
    return f"{name}  {', '.join([*parts, *table['notes']])}"


def _resolve(text: str) -> str:
    """Return a text, or the value of the environment variable that it names."""
    if not text.startswith(_VARIABLE):
        return text
    name = text.removeprefix(_VARIABLE)
    value = os.environ.get(name)
    if not value:
        raise CommandError(f"The environment variable {name} is not set.")
    return value


def _is_outside(text: str) -> bool:
    return looks_remote(text) or "/" in text or text.endswith(".json") or Path(text, FILE_NAME).exists()


def _read_options(options: dict[str, Any]) -> CopyOptions:
    rename = {}
    for text in options["rename"]:
        name, equals, other = text.partition("=")
        if not (name and equals and other):
            raise CommandError(f"{text!r} must be written as TABLE=NAME.")
        rename[name] = other
    return CopyOptions(
        tables=options["tables"] or ("*",),
        rename=rename,
        filter=options["filter"],
        rate=options["rate"],
        deletes=options["delete"],
        is_full=options["full"],
        dry_run=options["dry_run"],
        with_policies=not options["no_policies"],
        with_service_properties=not options["no_properties"],
        verifies=not options["no_verify"],
    )
