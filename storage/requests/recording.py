"""Writing of the request log: redaction, explanation and storage in the background, and retention."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min, QuerySet

from storage.access import inspection
from storage.domain import sas
from storage.domain.errors import InvalidAuthenticationInfo, PartKind, StorageError, TableNotFound
from storage.domain.filters.access_plan import plan_access
from storage.domain.requests.cleaning import (
    clean_filter,
    clean_method,
    clean_options,
    clean_table,
    clean_version,
    clean_words,
)
from storage.domain.requests.kept_addresses import UNKNOWN, KeptAddress, keep_address
from storage.domain.requests.observed import Authentication, ObservedRequest
from storage.domain.requests.options import read_options
from storage.domain.requests.outcomes import Outcome
from storage.domain.requests.recorded import (
    Fault,
    KeptRequest,
    RequestLogSettings,
    SentRequest,
    dump_fault,
    outcome_of,
)
from storage.domain.requests.routes import Address, resolve_address, resolve_operation, resolve_target
from storage.domain.values.kinds import AccountKind
from storage.inspector.causes import missing_table
from storage.inspector.facts import Facts, IncomingRequest
from storage.inspector.filters import inspect_filter
from storage.inspector.records import clean_filter_detail, dump_report
from storage.inspector.requests import inspect_request
from storage.models import Account, RecordedRequest
from storage.requests.earlier_changes import find_earlier_change, is_explained
from storage.requests.requests import is_rehearsed_failure
from storage.sql import background
from storage.sql.django import execute, storable_text
from storage.sql.failures import Canceled
from storage.tables import tables

_ACCOUNTS: Final = 20  # the rows of all accounts are those of so many

_UNWRITTEN: Final = 5_000  # requests that wait while the database does not answer
_EXPLAINED: Final = 20  # causes for one write
_NAMES: Final = 2_000  # tables of an account that a missing name is compared with
_WAIT: Final = 10.0  # seconds for all reads of the history, after which a slow database is left alone
_ROWS: Final = 1000  # in a statement
_CHUNK: Final = 5_000  # rows that are deleted in a transaction
_ORDER: Final = 0x72657173  # number of the advisory lock, an arbitrary one


class _Pending(NamedTuple):
    row: RecordedRequest
    address: KeptAddress
    sent: SentRequest
    fault: Fault | None
    kind: AccountKind
    now: float  # when the request arrived, in seconds since 1970


class RequestLog:
    """Unwritten log entries of one process."""

    def __init__(self) -> None:
        self._pending: list[_Pending] = []
        self._tried: set[UUID] = set()  # ids of requests that a write which failed may have written

    def add(self, kept: KeptRequest, began: float, alike: int = 0) -> None:
        """Add a request; ``began`` is in seconds since 1970, ``alike`` the number of similar, uncounted ones."""
        if len(self._pending) < _UNWRITTEN:
            address = _address(kept)
            self._pending.append(
                _Pending(
                    _row(kept, address, began, alike),
                    address,
                    kept.sent,
                    kept.fault,
                    kept.observed.kind,
                    began,
                )
            )

    def write(self) -> None:
        if not self._pending:
            return
        _name_tables(self._pending)
        _explain(self._pending)
        _explain_filters(self._pending)
        _find_earlier_changes(self._pending, time.monotonic() + _WAIT)
        _find_similar_tables(self._pending)
        with transaction.atomic():
            # one process after the other, until it has committed: who has read an id can read all before it
            execute(f"{background.ASYNCHRONOUS}; SELECT pg_advisory_xact_lock({_ORDER})")
            written = self._written()
            rows = [it.row for it in self._pending if it.row.request_id not in written]
            for row in rows:
                row.pk = None  # after a crash, an id that an earlier try was given is given to others
            self._tried = {it.row.request_id for it in self._pending}
            RecordedRequest.objects.bulk_create(sorted(rows, key=lambda row: row.at), batch_size=_ROWS)
        self.give_up()

    def _written(self) -> set[UUID]:
        """Return the requests stored despite a failed write, whose COMMIT response was lost."""
        if not self._tried:
            return set()
        known = RecordedRequest.objects.filter(request_id__in=self._tried)
        return set(known.values_list("request_id", flat=True))

    def give_up(self) -> None:
        self._pending.clear()
        self._tried.clear()

    def forget(self, now: datetime) -> None:
        """Do nothing, as unwritten entries are limited by number."""


def _resolve(sent: SentRequest, suffixes: Sequence[str]) -> Address:
    headers = sent.headers
    return resolve_address(
        sent.path, headers.get(b"host"), sent.scheme, suffixes, headers.get(b"authorization"), sent.query
    )


def _address(kept: KeptRequest) -> KeptAddress:
    sent = kept.sent
    try:
        address = _resolve(sent, settings.HOST_SUFFIXES)
    except StorageError:
        return UNKNOWN
    return keep_address(address, sent.method, kept.observed.kind)


def _row(kept: KeptRequest, address: KeptAddress, began: float, alike: int) -> RecordedRequest:
    observed, sent, fault = kept
    table, operation = _operation(observed, sent)
    options, place = _options(sent, fault)
    outcome = outcome_of(observed.status, fault)
    has_run = observed.query is not None and outcome is not Outcome.REFUSED
    access = plan_access(observed.query.filter) if observed.query is not None and has_run else None
    return RecordedRequest(
        account_id=observed.account_id,
        at=datetime.fromtimestamp(began, UTC),
        request_id=UUID(observed.request_id),
        client_request_id=storable_text(clean_words(_header(sent, b"x-ms-client-request-id")), 128),
        outcome=outcome,
        status=observed.status,
        error=fault.code if fault is not None else "",
        operation=operation,
        method=clean_method(sent.method),
        table_name=storable_text(table, 255),
        path=storable_text(address.text(), 1024),
        options=[[storable_text(name, 128), storable_text(value, 4096)] for name, value in options],
        seconds=max(0.0, observed.sent - observed.started),
        ingress=observed.ingress,
        egress=observed.egress,
        authentication=observed.authentication,
        credential=storable_text(_credential(observed, sent), 256),
        address=storable_text(observed.address, 64),
        agent=storable_text(observed.agent.decode("latin-1"), 256),
        version=clean_version(_header(sent, b"x-ms-version")),
        access_path=access.path.value if access is not None else "",
        candidates=sorted(access.index_candidates() or ()) or None if access is not None else None,
        fault=_storable(dump_fault(fault, place, address.fault, observed.warnings, observed.rehearsed)),
        alike=alike,
    )


def _operation(observed: ObservedRequest, sent: SentRequest) -> tuple[str, str]:
    """Return the table and operation, even of a request refused before they were resolved."""
    if observed.operation is not None:
        return observed.table, observed.operation
    try:
        address = _resolve(sent, settings.HOST_SUFFIXES)
        target = resolve_target(address.rest, sent.method, address.account, observed.kind)
        options = read_options(sent.query)
        conditional = b"if-match" in sent.headers
        operation = resolve_operation(target, sent.method, options, conditional=conditional)
    except StorageError:
        return observed.table, ""
    return observed.table or clean_table(target.table, observed.kind), operation or ""


def _header(sent: SentRequest, name: bytes) -> str:
    return sent.headers.get(name, b"").decode("latin-1")


def _options(sent: SentRequest, fault: Fault | None) -> tuple[list[tuple[str, str]], tuple[int, int] | None]:
    """Return the redacted query options, and the position of a fault in the filter."""
    options = list(clean_options(sent.query))
    if fault is None or fault.span is None or fault.part is None or fault.part.kind is not PartKind.OPTION:
        return options, None
    text, place = clean_filter(read_options(sent.query).get("$filter", ""), fault.span)
    return [(name, text if name == "$filter" else value) for name, value in options], place


def _credential(observed: ObservedRequest, sent: SentRequest) -> str:
    """Return the name of the credential; for a refused SAS, its fingerprint."""
    if observed.credential is not None:
        return observed.credential.name
    if observed.authentication is Authentication.SAS:
        with suppress(StorageError):
            token = sas.read(read_options(sent.query))
            return sas.fingerprint(token) if token is not None else ""
    return ""


# tables and explanations


def _name_tables(pending: Sequence[_Pending]) -> None:
    """Reveal uncertain table names in addresses if such tables exist."""
    unsure: dict[int, list[_Pending]] = {}
    for it in pending:
        if it.address.name and not it.address.is_known:
            unsure.setdefault(it.row.account_id, []).append(it)
    for account_id, rows in unsure.items():
        existing = tables.existing(account_id, {it.address.folded for it in rows})
        for it in rows:
            if it.address.folded in existing:
                it.row.path = storable_text(it.address.text(is_known=True), 1024)
                it.row.table_name = storable_text(it.address.name, 255)


def _explain(pending: Sequence[_Pending]) -> None:
    """Explain refused access, once per cause."""
    causes: dict[tuple[Any, ...], list[_Pending]] = {}
    for it in pending:
        row = it.row
        if is_rehearsed_failure(row):
            continue
        if (row.status in (401, 403) or row.error == InvalidAuthenticationInfo.__name__) and not row.report:
            shared = (row.error, row.operation, row.table_name, row.credential, row.address, row.agent)
            cause = (row.account_id, it.fault.hint if it.fault is not None else "", *shared)
            causes.setdefault(cause, []).append(it)
    chosen = list(causes.values())[:_EXPLAINED]
    accounts = Account.objects.in_bulk({rows[0].row.account_id for rows in chosen})
    known = {pk: _facts(account) for pk, account in accounts.items()}
    for rows in chosen:
        facts = known.get(rows[0].row.account_id)
        if facts is None:
            continue
        report = explain(rows[0].sent, facts, rows[0].now, rows[0].row.path)
        for it in rows:
            it.row.report = report


def _explain_filters(pending: Sequence[_Pending]) -> None:
    """Diagnose refused filters, each once, while their values are known."""
    refused: dict[tuple[bytes, AccountKind], list[_Pending]] = {}
    for it in pending:
        part = it.fault.part if it.fault is not None else None
        if part is not None and (part.kind, part.name) == (PartKind.OPTION, "$filter"):
            refused.setdefault((it.sent.query, it.kind), []).append(it)
    for cause, rows in list(refused.items())[:_EXPLAINED]:
        diagnosed = inspect_filter(*cause)
        if diagnosed is None:
            continue
        text, span = clean_filter(diagnosed.text, diagnosed.span)
        details = _storable(
            {name: clean_filter_detail(name, value) for name, value in diagnosed.finding.details}
        )
        for it in rows:
            it.row.fault = {
                **(it.row.fault or {}),
                "position": diagnosed.span[0],
                "span": span,
                "filter": details,
            }
            it.row.options = [
                [name, storable_text(text if name == "$filter" else value, 4096)]
                for name, value in it.row.options
            ]


def _find_similar_tables(pending: Sequence[_Pending]) -> None:
    """Find the table that was probably meant by a name that no table has or had."""
    missed: dict[int, list[_Pending]] = {}
    for it in pending:
        if (
            it.row.error == TableNotFound.__name__
            and it.row.table_name
            and "change" not in (it.row.fault or {})
        ):
            missed.setdefault(it.row.account_id, []).append(it)
    accounts = Account.objects.in_bulk(missed)
    for account_id, rows in missed.items():
        names = tables.names(accounts[account_id], top=_NAMES) if account_id in accounts else []
        for it in rows:
            similar = dict(missing_table(it.row.table_name, names).details).get("similar")
            it.row.fault = {**(it.row.fault or {}), "similar": similar} if similar else it.row.fault


def _find_earlier_changes(pending: Sequence[_Pending], deadline: float) -> None:
    """Look up the earlier changes that explain failed requests, each once, until the deadline."""
    met: dict[tuple[Any, ...], list[_Pending]] = {}
    for it in pending:
        key, expected = (None, None) if it.fault is None else (it.fault.key, it.fault.expected)
        if is_explained(it.row, key) and "change" not in (it.row.fault or {}):
            met.setdefault((it.row.account_id, it.row.error, it.row.table_name, key, expected), []).append(it)
    chosen = list(met.items())[:_EXPLAINED]
    accounts = Account.objects.in_bulk({cause[0] for cause, _ in chosen})
    for (account_id, _error, _table, key, expected), rows in chosen:
        account = accounts.get(account_id)
        if account is None or time.monotonic() > deadline:
            continue
        with suppress(StorageError, Canceled):  # the database is slow, and the log can do without
            change = find_earlier_change(account, rows[0].row, key, expected)
            if change is None:
                continue
            for it in rows:
                it.row.fault = {**(it.row.fault or {}), "change": change.dump()}


def _facts(account: Account) -> Facts:
    """Return the facts of a single account, as its log must not reveal others."""
    return inspection.facts(
        [account],
        datetime.now(UTC),
        scheme="",
        host="",
        client="",
        suffixes=settings.HOST_SUFFIXES,
        takes_bearer=settings.BEARER is not None,
    )


def explain(sent: SentRequest, facts: Facts, now: float, path: str) -> dict[str, Any] | None:
    """Return the report on denied access in the form of records.dump_report; ``path`` is the logged path."""
    try:
        address = _resolve(sent, facts.suffixes)
    except StorageError:
        return None
    incoming = IncomingRequest(
        address, sent.method, sent.path, sent.query, sent.headers, sent.scheme, sent.client
    )
    report = inspect_request(incoming, replace(facts, now=now))
    kept: dict[str, Any] = _storable(dump_report(report, incoming, path, facts.accounts.get(address.account)))
    return kept


def _storable(kept: Any) -> Any:
    match kept:
        case str():
            return storable_text(kept, len(kept))
        case Mapping():
            return {name: _storable(value) for name, value in kept.items()}
        case list():
            return [_storable(it) for it in kept]
        case _:
            return kept


# keeping


def tidy(now: datetime) -> None:
    """Delete expired or excess entries, in chunks."""
    kept: RequestLogSettings = settings.REQUEST_LOG
    every = RecordedRequest.objects.order_by("pk")
    while _delete(every, at__lt=now - kept.keep):
        pass
    _delete_beyond(every, _ACCOUNTS * kept.rows)
    ends = every.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["first"] is None or ends["last"] - ends["first"] < kept.rows:
        return  # no account can have so many
    for account_id in every.order_by().values_list("account_id", flat=True).distinct():
        _delete_beyond(every.filter(account_id=account_id), kept.rows)


def _delete_beyond(found: QuerySet[RecordedRequest], number: int) -> None:
    """Delete all but the newest entries."""
    last = found.reverse().values_list("pk", flat=True)[number : number + 1].first()
    while last is not None and _delete(found, pk__lte=last):
        pass


def _delete(rows: QuerySet[RecordedRequest], **condition: Any) -> bool:
    """Delete the oldest entries that meet a condition; return whether there may be more."""
    oldest = rows.values("pk")[:_CHUNK]
    with transaction.atomic():
        background.commit_asynchronously()
        deleted, _ = RecordedRequest.objects.filter(pk__in=oldest, **condition).delete()
    return deleted == _CHUNK
