"""Inspection of requests."""

from collections.abc import Iterator
from dataclasses import replace

from storage.domain.access.grants import OWNER
from storage.domain.access.signature import Authorization, Scheme, read_authorization, string_to_sign, verify
from storage.domain.errors import AuthenticationFailed, StorageError
from storage.domain.requests.options import read_options
from storage.inspector import causes, request_drafts
from storage.inspector.facts import Facts, ManagedAccount
from storage.inspector.judging import IncomingRequest, judge_request
from storage.inspector.reports import (
    FieldKind,
    Finding,
    Mistake,
    Report,
    ReportKind,
    RequestField,
    SignedLine,
    Verdict,
    finding,
    mask,
    name_lines,
)
from storage.inspector.request_drafts import RequestDraft
from storage.inspector.search import Mac, candidate_keys, search, search_depth
from storage.inspector.tokens import inspect_token, read_pairs


def inspect_request(sent: IncomingRequest, facts: Facts) -> Report:
    account = facts.accounts.get(sent.address.account)
    has_header, has_token = b"authorization" in sent.headers, _has_token(sent)
    if has_token and not has_header:
        return _with_token(sent, facts)
    authorization = _authorization(sent)
    mistakes = list(_mistakes(sent, account, authorization, facts, has_token=has_token))
    verdict = _verdict(sent, account, facts, has_header=has_header)
    return Report(
        ReportKind.REQUEST,
        sent.address.account,
        is_managed=account is not None,
        fields=list(request_fields(sent, authorization)),
        lines=_lines(sent, authorization),
        verdict=verdict,
        findings=list(dict.fromkeys(mistakes)),
        key=verdict.key if verdict else "",
    )


def _with_token(sent: IncomingRequest, facts: Facts) -> Report:
    report = inspect_token(sent.query.decode("latin-1"), sent, facts)
    return replace(
        report,
        kind=ReportKind.REQUEST,
        parameters=[parameter for parameter in report.parameters if not parameter.name.startswith("$")],
        fields=[
            field
            for field in request_fields(sent, None)
            if not field.is_signed or field.part is not FieldKind.OPTION
        ],
    )


def _has_token(sent: IncomingRequest) -> bool:
    try:
        return "sig" in read_options(sent.query)
    except StorageError:
        return b"sig=" in sent.query


def _authorization(sent: IncomingRequest) -> Authorization | None:
    try:
        return read_authorization(sent.headers.get(b"authorization", b""))
    except StorageError:
        return None


def _verdict(
    sent: IncomingRequest, account: ManagedAccount | None, facts: Facts, *, has_header: bool
) -> Verdict | None:
    header = sent.headers.get(b"authorization", b"")
    if header[:7].lower() == b"bearer " or (not has_header and facts.takes_bearer):
        return None
    if not has_header:
        return Verdict(error=AuthenticationFailed())
    return None if account is None else judge_request(sent, account, facts)


def _mistakes(
    sent: IncomingRequest,
    account: ManagedAccount | None,
    authorization: Authorization | None,
    facts: Facts,
    *,
    has_token: bool,
) -> Iterator[Finding]:
    if b"authorization" not in sent.headers:
        yield finding(Mistake.NO_AUTHORIZATION)
        return
    if has_token:
        yield finding(Mistake.TWO_AUTHORIZATIONS)
    yield from causes.find_authorization_causes(sent, facts.now)
    if account is not None and authorization is not None:
        yield from _of_signature(sent, account, authorization, facts)
        yield from causes.find_account_causes(account, sent.client)
        yield from causes.find_operation_causes(sent, OWNER, account, account.name)


def _of_signature(
    sent: IncomingRequest, account: ManagedAccount, authorization: Authorization, facts: Facts
) -> Iterator[Finding]:
    if _is_signed(sent, account, authorization):
        return
    draft = RequestDraft(
        sent.signed, authorization.scheme, sent.address.base.partition("/" + account.name)[0],
        is_path_style=not sent.address.host_style,
    )  # fmt: skip
    mistakes = search(
        draft,
        request_drafts.changes(facts),
        (),
        request_drafts.write,
        [Mac(authorization.mac)],
        candidate_keys(account, facts),
        search_depth(len(sent.path) + len(sent.query)),
    )
    yield from (finding(Mistake.UNKNOWN_KEY, account=account.name),) if mistakes is None else mistakes


def _is_signed(sent: IncomingRequest, account: ManagedAccount, authorization: Authorization) -> bool:
    """Return whether an accepted key signed the request, regardless of its date and the account in the header."""
    date = causes.read_request_date(sent)
    accepted = [key.value for key in account.keys if key.is_accepted]
    named = authorization._replace(account=sent.address.account)
    try:
        verify(sent.signed, named, accepted, 0.0 if date is None else date)
    except AuthenticationFailed:
        return False
    return True


def _lines(sent: IncomingRequest, authorization: Authorization | None) -> list[SignedLine]:
    if authorization is None:
        return []
    texts = string_to_sign(sent.signed, authorization.scheme).decode("utf-8", "replace").split("\n")
    names = ("Date", "/…") if authorization.scheme is Scheme.SHARED_KEY_LITE else _NAMES
    return name_lines(texts, names)


_NAMES = ("Method", "Content-MD5", "Content-Type", "Date", "/…")


def request_fields(sent: IncomingRequest, authorization: Authorization | None) -> Iterator[RequestField]:
    is_full = authorization is not None and authorization.scheme is Scheme.SHARED_KEY
    is_signed = authorization is not None
    yield RequestField("method", sent.method, FieldKind.METHOD, is_signed=is_full)
    yield RequestField("account", sent.address.account, FieldKind.ACCOUNT, is_signed=is_signed)
    if sent.address.secondary:
        yield RequestField("secondary", sent.address.base, FieldKind.SECONDARY)
    yield RequestField("path", sent.path.decode("latin-1"), FieldKind.RESOURCE, is_signed=is_signed)
    for name, value in read_pairs(sent.query.decode("latin-1")):
        is_comp = name.lower() == "comp"
        shown = mask(value) if name.lower() == "sig" else value
        yield RequestField(
            name, shown, FieldKind.COMP if is_comp else FieldKind.OPTION, is_signed=is_signed and is_comp
        )
    yield from _headers(sent, is_full=is_full, is_signed=is_signed)
    if authorization is not None:
        yield RequestField("Authorization", authorization.scheme.value.decode(), FieldKind.SCHEME)
        yield RequestField("Authorization", authorization.account, FieldKind.SIGNER)
        mac = sent.headers[b"authorization"].decode("latin-1").rpartition(":")[2]
        yield RequestField("Authorization", mask(mac), FieldKind.SIGNATURE)


def _headers(sent: IncomingRequest, *, is_full: bool, is_signed: bool) -> Iterator[RequestField]:
    other_date = (
        (FieldKind.OTHER_DATE, False) if b"x-ms-date" in sent.headers else (FieldKind.DATE, is_signed)
    )
    for name, part, covered in (
        ("x-ms-date", FieldKind.DATE, is_signed),
        ("Date", *other_date),
        ("Content-Type", FieldKind.CONTENT_TYPE, is_full),
        ("Content-MD5", FieldKind.CONTENT_MD5, is_full),
        ("x-ms-version", FieldKind.VERSION, False),
    ):
        value = sent.headers.get(name.lower().encode())
        if value is not None:
            yield RequestField(name, value.decode("latin-1"), part, is_signed=covered)
