"""Inspection of requests."""

from binascii import b2a_base64
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import unquote_to_bytes

from storage.domain.access.grants import OWNER
from storage.domain.access.signature import (
    CLOCK_SKEW,
    Authorization,
    Scheme,
    SignedRequest,
    read_authorization,
    read_date,
    string_to_sign,
    verify,
)
from storage.domain.errors import AuthenticationFailed, InvalidAuthenticationInfo, StorageError
from storage.domain.requests.options import read_options
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.inspector import causes
from storage.inspector.causes import Cause
from storage.inspector.facts import Facts, IncomingRequest, Key, ManagedAccount
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import (
    FieldKind,
    Finding,
    Report,
    ReportKind,
    RequestField,
    SignedLine,
    Verdict,
    finding,
    mask,
    name_lines,
)
from storage.inspector.signatures import (
    OtherText,
    confused_accounts,
    explain_signature,
    with_other_newlines,
)
from storage.inspector.tokens import inspect_token, read_pairs


def inspect_request(sent: IncomingRequest, facts: Facts) -> Report:
    account = facts.accounts.get(sent.address.account)
    header = sent.headers.get(b"authorization")
    has_token = _has_token(sent)
    if has_token and header is None:
        return _with_token(sent, facts)
    authorization = authorization_of(sent)
    faults = list(_find_causes(sent, account, authorization, facts, has_token=has_token))
    is_judged = not facts.takes_bearer if header is None else account is not None and not _is_bearer(header)
    key = None
    if account is not None and authorization is not None and not has_token:
        with suppress(StorageError):
            key = _verify(sent, account, authorization, facts.now)
    verdict = Verdict(key.name if key else "", causes.first_error(faults)) if is_judged else None
    return Report(
        ReportKind.REQUEST,
        sent.address.account,
        is_managed=account is not None,
        fields=request_fields(sent, authorization),
        lines=request_lines(sent, authorization),
        verdict=verdict,
        findings=causes.findings_of(faults),
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


def authorization_of(sent: IncomingRequest) -> Authorization | None:
    try:
        return read_authorization(sent.headers.get(b"authorization", b""))
    except StorageError:
        return None


def _is_bearer(header: bytes) -> bool:
    return header[:7].lower() == b"bearer "


def _find_causes(
    sent: IncomingRequest,
    account: ManagedAccount | None,
    authorization: Authorization | None,
    facts: Facts,
    *,
    has_token: bool,
) -> Iterator[Cause]:
    header = sent.headers.get(b"authorization")
    if header is None:
        yield Cause(AuthenticationFailed(), finding(Mistake.NO_AUTHORIZATION))
        return
    yield from causes.attempt(partial(read_options, sent.query))
    if has_token:
        error = AuthenticationFailed(AuthenticationErrorDetail="Two kinds of authorization came at once.")
        yield Cause(error, finding(Mistake.TWO_AUTHORIZATIONS))
    if authorization is None:
        mistake = Mistake.BEARER if _is_bearer(header) else Mistake.MALFORMED_AUTHORIZATION
        yield Cause(InvalidAuthenticationInfo(), finding(mistake))
        return
    if authorization.account != sent.address.account:
        names = {"signed": authorization.account, "addressed": sent.address.account}
        yield from causes.explain(finding(Mistake.ACCOUNT_DIFFERS, **names))
    yield from _of_date(sent, facts.now)
    if account is not None:
        yield from causes.attempt(partial(_verify, sent, account, authorization, facts.now))
        yield from _of_signature(sent, account, authorization, facts)
        yield from causes.of_keys(account)
        yield from causes.of_network(account, sent.client)
        yield from causes.of_operation(sent, OWNER, account)


def _verify(sent: IncomingRequest, account: ManagedAccount, authorization: Authorization, now: float) -> Key:
    """Return the name of the key that signed the request; raises the service's error."""
    keys = account.accepted_keys
    return keys[verify(sent.signed, authorization, [key.value for key in keys], now)]


def _date(sent: IncomingRequest) -> bytes:
    return sent.headers.get(b"x-ms-date", sent.headers.get(b"date", b""))


def _of_date(sent: IncomingRequest, now: float) -> Iterator[Cause]:
    instant = read_date(_date(sent))
    if instant is None:
        yield from causes.explain(finding(Mistake.NO_DATE, date=_date(sent).decode("latin-1")))
    elif abs(now - instant) > CLOCK_SKEW:
        details = {"seconds": str(abs(int(now - instant))), "now": causes.show(int(now * TICKS_PER_SECOND))}
        yield from causes.explain(finding(Mistake.CLOCK_SKEW, **details))


def _of_signature(
    sent: IncomingRequest, account: ManagedAccount, authorization: Authorization, facts: Facts
) -> Iterator[Cause]:
    # regardless of its date and the account in the header
    named, date = authorization._replace(account=account.name), read_date(_date(sent))
    if not list(causes.attempt(partial(_verify, sent, account, named, float(date or 0)))):
        return
    signature = b2a_base64(authorization.mac, newline=False).decode()
    text = string_to_sign(sent.signed, authorization.scheme)
    others = _other_texts(sent.signed, authorization.scheme, facts)
    yield from causes.explain(*explain_signature(signature, text, others, account, facts))


def _other_texts(request: SignedRequest, scheme: Scheme, facts: Facts) -> Iterator[OtherText]:
    for changed, mistake in (
        *_with_other_headers(request),
        *_with_other_paths(request),
        *_with_other_accounts(request, facts),
    ):
        yield OtherText(string_to_sign(changed, scheme), mistake)
    other = Scheme.SHARED_KEY if scheme is Scheme.SHARED_KEY_LITE else Scheme.SHARED_KEY_LITE
    names = {"signed": other.value.decode(), "sent": scheme.value.decode()}
    yield OtherText(string_to_sign(request, other), finding(Mistake.OTHER_SCHEME, **names))
    without_query = string_to_sign(request._replace(query=b""), scheme)
    yield OtherText(without_query, finding(Mistake.COMP_LEFT_OUT))
    for query in (request.query, unquote_to_bytes(request.query)):
        yield OtherText(without_query + b"?" + query, finding(Mistake.QUERY_SIGNED))
    yield from with_other_newlines(string_to_sign(request, scheme))


def _with_other_headers(request: SignedRequest) -> Iterator[tuple[SignedRequest, Finding]]:
    undated = {**request.headers, b"x-ms-date": b""}
    yield request._replace(headers=undated), finding(Mistake.NO_DATE_SIGNED)
    sent = request.headers.get(b"content-type", b"").decode("latin-1")
    plain = sent.partition(";")[0].strip()
    for signed, mistake in (
        ("", finding(Mistake.CONTENT_TYPE_ADDED, sent=sent)),
        (plain, finding(Mistake.CONTENT_TYPE_OTHER, sent=sent, signed=plain)),
    ):
        yield (
            request._replace(headers={**request.headers, b"content-type": signed.encode("latin-1")}),
            mistake,
        )


def _with_other_paths(request: SignedRequest) -> Iterator[tuple[SignedRequest, Finding]]:
    account, path = request.account, request.path
    prefix = f"/{account}".encode()
    if path == prefix or path.startswith(prefix + b"/"):
        mistake = finding(Mistake.ACCOUNT_NOT_DOUBLED, account=account)
        yield request._replace(path=path.removeprefix(prefix)), mistake
    for signed, mistake in (
        (prefix + path, finding(Mistake.ACCOUNT_DOUBLED, account=account)),
        (unquote_to_bytes(path), finding(Mistake.PATH_DECODED)),
        (path.lower(), finding(Mistake.TABLE_CASE, table=path.rpartition(b"/")[2].decode("latin-1"))),
    ):
        yield request._replace(path=signed), mistake


def _with_other_accounts(request: SignedRequest, facts: Facts) -> Iterator[tuple[SignedRequest, Finding]]:
    own = f"/{request.account}".encode()
    for name, mistake in confused_accounts(request.account, facts):
        renamed = request._replace(account=name)
        yield renamed, mistake
        if request.path.startswith(own):
            yield renamed._replace(path=f"/{name}".encode() + request.path.removeprefix(own)), mistake


def request_lines(sent: IncomingRequest, authorization: Authorization | None) -> list[SignedLine]:
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
        RequestField("path", _show(sent.path), FieldKind.RESOURCE, is_signed=is_signed),
        *(_option(name, value, is_signed=is_signed) for name, value in read_pairs(_show(sent.query))),
        *(
            RequestField(name, _show(sent.headers[key]), part, is_signed=is_covered)
            for name, part, is_covered in headers
            if (key := name.lower().encode()) in sent.headers
        ),
    ]
    if authorization is not None:
        mac = b2a_base64(authorization.mac, newline=False).decode()
        fields += (
            RequestField("Authorization", authorization.scheme.value.decode(), FieldKind.SCHEME),
            RequestField("Authorization", authorization.account, FieldKind.SIGNER),
            RequestField("Authorization", mask(mac), FieldKind.SIGNATURE),
        )
    return [field for field in fields if field.part is not FieldKind.SECONDARY or sent.address.secondary]


def _show(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _option(name: str, value: str, *, is_signed: bool) -> RequestField:
    shown = mask(value) if name.lower() == "sig" else value
    if name.lower() == "comp":
        return RequestField(name, shown, FieldKind.COMP, is_signed=is_signed)
    return RequestField(name, shown, FieldKind.OPTION)
