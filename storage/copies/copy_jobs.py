"""Jobs that copy between an account and another service; the credentials are stored encrypted."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from storage.accounts import accounts, sealed_keys
from storage.accounts.refusals import SealedOtherwise
from storage.activity import activity
from storage.copies import progress
from storage.copies.copying import (
    Chunk,
    Copying,
    CopyOptions,
    CopyRefused,
)
from storage.copies.sides import (
    AccountSide,
    FileSide,
    RemoteSide,
    Side,
)
from storage.copies.subject import CopyVerb
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.refusals import Reason
from storage.domain.values import dialects
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import DEVELOPMENT_ACCOUNT
from storage.editing.filters.diagnosis import parse_filter
from storage.jobs import files, jobs
from storage.jobs.kinds import (
    JobKind,
    JobMustWait,
    JobRequest,
    NoState,
    Run,
    Step,
)
from storage.jobs.states import JobStatus
from storage.models import Account, Activity, ImportDraft, Job, JobFile
from storage.remote.addresses import AddressRefused, IsAllowed, allow_all, allow_public, allowed_addresses
from storage.remote.azurite import AzuriteFile, NotAzurite, find_accounts
from storage.remote.client import RemoteUnavailable, TableClient
from storage.remote.endpoints import Endpoint, read_endpoint, read_token
from storage.sql.background import try_job_lock
from storage.transfer import file_work, uploads


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a copy: the other side, and what to copy."""

    service: str  # the URL of the other side, or the name of a file and the account in it
    options: Mapping[str, Any]
    secret: str = ""  # the sealed credentials for ``service``; empty once the job has ended
    file: int = 0  # the number of a file of jobs; 0 if there is none
    file_account: str = ""
    # whether the other side may be at any address, as for an admin on the server's machine
    is_unlimited: bool = False

    def read_options(self) -> CopyOptions:
        return CopyOptions(**self.options)


class _CopyJob(JobKind[Arguments, NoState]):
    """Job that copies tables; a process that takes it over, a resumed job and a new one continue from its progress."""

    arguments, state, capability = Arguments, NoState, Capability.CONFIGURE
    is_transactional, goes_on, secrets = False, True, ("secret",)
    is_outgoing: ClassVar[bool]

    def begin(self, run: Run[Arguments]) -> Step[NoState]:
        if not self.is_outgoing:
            accounts.check_writable(run.account)
        return Step(NoState())

    def step(self, run: Run[Arguments], state: NoState) -> Step[NoState]:
        with self._keeping_others_waiting(run):
            return self._copy(run, state)

    def _copy(self, run: Run[Arguments], state: NoState) -> Step[NoState]:
        options, here = run.arguments.read_options(), AccountSide(run.account, run.by)

        def save(chunk: Chunk) -> None:
            counts = dict(chunk.counts)
            if self.is_outgoing:  # it is not known of all which of them existed
                exported = counts.pop("inserted", 0) + counts.pop("changed", 0)
                counts |= {"exported": exported} if exported else {}
            run.save(Step(state, done=chunk.done, counts=counts, failures=chunk.failures))

        def begin(pair: progress.CopiedPair) -> Any:
            return progress.begin(
                run.account,
                pair,
                is_outgoing=self.is_outgoing,
                service=run.arguments.service,
                job=run.job.pk,
                filter_=options.filter,
                is_full=options.is_full or bool(run.arguments.file),  # another file may have the same name
            )

        copying = Copying(here, here, options, save, run.rest, run.check, begin)
        with _opening(run, copying) as there:
            if self.is_outgoing:
                assert isinstance(there, RemoteSide)
                copying.target = there
            else:
                copying.source = there
            outcomes = copying.run()
        return Step(state, result={"tables": outcomes}, is_finished=True)

    @contextmanager
    def _keeping_others_waiting(self, run: Run[Arguments]) -> Iterator[None]:
        """Hold a lock among copies between the same two sides, which share their progress; raises JobMustWait."""
        if run.arguments.options["dry_run"]:
            yield
            return
        service = run.arguments.service
        with try_job_lock(f"{self.name} {run.account.pk} {service}") as is_alone:
            # between the turns of a job the lock is free
            if not is_alone or self._find_first(run.account, service) != run.job.pk:
                raise JobMustWait
            yield

    def _find_first(self, account: Account, service: str) -> int:
        """Return the copy job that runs next: the one in progress, or else the oldest that is not paused."""
        unfinished = Job.objects.filter(
            kind=self.name, account=account, ended_at=None, arguments__service=service
        )
        going = unfinished.exclude(status=JobStatus.PAUSED).exclude(arguments__options__dry_run=True)
        numbers = set(going.values_list("pk", flat=True))
        latest = progress.find_latest_job(account, is_outgoing=self.is_outgoing, service=service)
        return latest if latest in numbers else min(numbers)

    def end(self, run: Run[Arguments], state: NoState | None, status: JobStatus) -> Activity | None:
        counts = run.job.counts
        written = sum(counts.get(name, 0) for name in ("inserted", "changed", "deleted", "exported"))
        if not written or run.arguments.options["dry_run"]:
            return None
        assert run.job.started_at is not None
        return activity.record(
            CopyVerb.COPY_OUT if self.is_outgoing else CopyVerb.COPY_IN,
            run.by,
            account=run.account,
            detail={
                "service": run.arguments.service,
                **counts,
                "rows": written,
                "began": run.job.started_at.isoformat(),
                **({} if status is JobStatus.DONE else {"interrupted": True}),
            },
        )


class _CopyInJob(_CopyJob):
    name, is_outgoing, parses_files = "account.copy-in", False, True


class _CopyOutJob(_CopyJob):
    name, is_outgoing = "account.copy-out", True


COPY_IN_JOB: Final = _CopyInJob()
COPY_OUT_JOB: Final = _CopyOutJob()


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of another service, as a user has entered them."""

    text: str = field(repr=False)  # a connection string, or a URL, with a SAS unless there is a bearer token
    bearer: str = field(default="", repr=False)
    # a token of the management API of another Tablero, for its change feed
    feed_token: str = field(default="", repr=False)

    def read(self) -> Endpoint:
        return replace(
            read_endpoint(self.text, read_token(self.bearer)), feed_token=read_token(self.feed_token)
        )


def check_address(endpoint: Endpoint) -> None:
    """Raise RemoteUnavailable if no address of a service may be reached, as a job would."""
    url = urlsplit(endpoint.url)
    is_tls = url.scheme == "https"
    try:
        port = url.port or (443 if is_tls else 80)
        allowed_addresses(url.hostname or "", port, allow_public(settings.COPY_NETWORKS), is_tls=is_tls)
    except AddressRefused as error:
        reason = Reason.REMOTE_WITHOUT_TLS if error.has_public else Reason.REMOTE_PRIVATE
        raise RemoteUnavailable(reason, service=endpoint.url) from None
    except (
        OSError,
        UnicodeError,
    ):  # as for a private address: users must not find out which names exist in the server's network
        raise RemoteUnavailable(Reason.REMOTE_PRIVATE, service=endpoint.url) from None


def request(
    account: Account,
    credentials: Credentials,
    options: CopyOptions,
    *,
    is_outgoing: bool = False,
    is_unlimited: bool = False,
) -> JobRequest[Arguments, NoState]:
    """Return a job that copies from another service to an account, or back."""
    parse_filter(options.filter, None, dialects.STORAGE)
    endpoint = credentials.read()
    if not is_outgoing:
        accounts.check_writable(account)
    sealed = sealed_keys.seal(_sealed_for(account), json.dumps(_write(credentials)).encode())
    arguments = Arguments(
        endpoint.url,
        asdict(options),
        secret=base64.b64encode(sealed).decode(),
        is_unlimited=is_unlimited,
    )
    return JobRequest(COPY_OUT_JOB if is_outgoing else COPY_IN_JOB, arguments, account)


def start_from_file(
    account: Account, file: JobFile, file_account: str, options: CopyOptions, *, by: Actor
) -> Job:
    """Start a job that copies from an Azurite file; raises CopyRefused, NotAzurite or TooMuchFileWork.

    ``file_account`` defaults to the only account in the file. Accounts that do not appear at the beginning of
    the file are checked by the job.
    """
    accounts.check_writable(account)
    if options.filter:
        raise CopyRefused(Reason.COPY_FILTER_OF_FILE)
    names = accounts_of(file)
    if names is not None:
        file_account = _choose_account(names, file_account, file.name)
    service = f"{file.name} {file_account}".strip()
    arguments = Arguments(service, asdict(options), file=file.pk, file_account=file_account)
    with transaction.atomic():
        file_work.require_room(account, by=by)
        return jobs.start(COPY_IN_JOB, arguments, account=account, files=[file], by=by)


def _choose_account(names: Sequence[str], requested: str, path: str) -> str:
    """Return the requested account of a file, or the only one; raises NotAzurite."""
    names = names or [requested or DEVELOPMENT_ACCOUNT]
    chosen = requested or (names[0] if len(names) == 1 else "")
    if chosen not in names:
        raise NotAzurite(Reason.FILE_ACCOUNTS, path=path, accounts=", ".join(names))
    return chosen


def find_file(account: Account, pk: int, *, by: Actor) -> JobFile | None:
    """Return a file that a user uploaded for a copy, or that an earlier copy used."""
    upload = uploads.get(account, pk, by=by)
    if upload is None or not upload.is_complete or ImportDraft.objects.filter(file=upload).exists():
        return None
    job = upload.job
    return upload if job is None or (job.kind == COPY_IN_JOB.name and job.ended_at) else None


def accounts_of(file: JobFile) -> list[str] | None:
    """Return the accounts with tables in an Azurite file; None if its beginning does not tell."""
    with file_work.reading(file.owner):
        return find_accounts(file_work.opening(file), file.name)


def tables_of(job: Job) -> list[dict[str, Any]]:
    """Return the results of a copy by table, or its progress so far."""
    found = job.result.get("tables")
    return progress.of_job(job.pk) if found is None else found


@contextmanager
def _opening(run: Run[Arguments], copying: Copying) -> Iterator[Side]:
    kind = AccountKind(run.account.kind)
    arguments = run.arguments
    if arguments.file:
        file = JobFile.objects.filter(pk=arguments.file, is_complete=True).first()
        if file is None:
            raise NotAzurite(Reason.FILE_NOT_READ, path=arguments.service, why="it has expired")
        azurite = AzuriteFile(partial(files.open_file, file), file.name, run.look)
        chosen = _choose_account(azurite.accounts(), arguments.file_account, file.name)
        yield FileSide(azurite, chosen, kind)
        return
    if not arguments.secret:
        raise CopyRefused(Reason.REMOTE_CREDENTIALS_GONE, service=arguments.service, job=run.job.pk)
    sealed = sealed_keys.unseal_as(_sealed_for(run.account), base64.b64decode(arguments.secret))
    is_allowed: IsAllowed = allow_all if arguments.is_unlimited else allow_public(settings.COPY_NETWORKS)
    endpoint = Credentials(**json.loads(sealed)).read()
    side = RemoteSide(TableClient(endpoint, is_allowed, copying.wait, run.check), kind)
    try:
        yield side
    finally:
        side.close()


def reseal() -> None:
    """Seal the credentials of unfinished copies with the present secret of the server."""
    kinds = (COPY_IN_JOB.name, COPY_OUT_JOB.name)
    for job in Job.objects.filter(kind__in=kinds, ended_at=None).select_related("account"):
        if job.account is not None and (text := job.arguments.get("secret")):
            name = _sealed_for(job.account)
            with suppress(SealedOtherwise):
                sealed = sealed_keys.seal(name, sealed_keys.unseal_as(name, base64.b64decode(text)))
                job.arguments["secret"] = base64.b64encode(sealed).decode()
                job.save(update_fields=("arguments",))


def _write(credentials: Credentials) -> dict[str, str]:
    return {"text": credentials.text, "bearer": credentials.bearer, "feed_token": credentials.feed_token}


def _sealed_for(account: Account) -> str:
    # no account has such a name
    return f"copy {account.name}"
