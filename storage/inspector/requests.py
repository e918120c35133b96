"""Inspection of requests."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from storage.domain.access.grants import OWNER
from storage.domain.access.signature import Authorization, Scheme, read_authorization, string_to_sign, verify
from storage.domain.errors import AuthenticationFailed, StorageError
from storage.domain.requests.options import read_options
from storage.inspector import causes
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
from storage.inspector.request_mistakes import draft_request, usual_mistakes
from storage.inspector.signatures import Mac, candidate_keys, search
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
        fields=request_fields(sent, authorization),
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
        fields=request_fields(sent, None),
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
    origin = sent.address.base.partition("/" + account.name)[0]
    mistakes = search(
        draft_request(sent.signed, authorization.scheme),
        usual_mistakes(sent.signed, authorization.scheme, origin, facts),
        (),
        [Mac(authorization.mac)],
        candidate_keys(account, facts),
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
    return name_lines(texts, _NAMES[authorization.scheme])


_NAMES: Final = {
    Scheme.SHARED_KEY: ("Method", "Content-MD5", "Content-Type", "Date", "/…"),
    Scheme.SHARED_KEY_LITE: ("Date", "/…"),
}


def request_fields(sent: IncomingRequest, authorization: Authorization | None) -> list[RequestField]:
    is_signed = authorization is not None
    is_full = authorization is not None and authorization.scheme is Scheme.SHARED_KEY
    has_own_date = b"x-ms-date" in sent.headers
    headers = (
        ("x-ms-date", FieldKind.DATE, is_signed),
        ("Date", FieldKind.OTHER_DATE if has_own_date else FieldKind.DATE, is_signed and not has_own_date),
        ("Content-Type", FieldKind.CONTENT_TYPE, is_full),
        ("Content-MD5", FieldKind.CONTENT_MD5, is_full),
        ("x-ms-version", FieldKind.VERSION, False),
    )
    fields = [
        RequestField("method", sent.method, FieldKind.METHOD, is_signed=is_full),
        RequestField("account", sent.address.account, FieldKind.ACCOUNT, is_signed=is_signed),
        RequestField("secondary", sent.address.base, FieldKind.SECONDARY),
        RequestField("path", sent.path.decode("latin-1"), FieldKind.RESOURCE, is_signed=is_signed),
        *(
            _option(name, value, is_signed=is_signed)
            for name, value in read_pairs(sent.query.decode("latin-1"))
        ),
        *(
            RequestField(name, sent.headers[key].decode("latin-1"), part, is_signed=is_covered)
            for name, part, is_covered in headers
            if (key := name.lower().encode()) in sent.headers
        ),
    ]
    if authorization is not None:
        mac = sent.headers[b"authorization"].decode("latin-1").rpartition(":")[2]
        fields += (
            RequestField("Authorization", authorization.scheme.value.decode(), FieldKind.SCHEME),
            RequestField("Authorization", authorization.account, FieldKind.SIGNER),
            RequestField("Authorization", mask(mac), FieldKind.SIGNATURE),
        )
    return [field for field in fields if field.part is not FieldKind.SECONDARY or sent.address.secondary]


def _option(name: str, value: str, *, is_signed: bool) -> RequestField:
    shown = mask(value) if name.lower() == "sig" else value
    if name.lower() == "comp":
        return RequestField(name, shown, FieldKind.COMP, is_signed=is_signed)
    return RequestField(name, shown, FieldKind.OPTION)
