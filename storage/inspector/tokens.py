"""Inspection of shared access signatures, alone or with a request."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from urllib.parse import quote, unquote_to_bytes

from storage.domain import sas
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import AuthenticationFailed, StorageError
from storage.domain.requests.options import read_options
from storage.domain.sas import SAS_NAMES, AccountSas, TableSas
from storage.domain.sas.explain import Meaning, explain
from storage.domain.sas.known import find_policy, is_orphaned
from storage.domain.sas.tokens import NAMED_SERVICE, RESTRICTED, SCOPED, read_leniently
from storage.inspector import causes
from storage.inspector.causes import Cause
from storage.inspector.facts import Facts, IncomingRequest, ManagedAccount
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import (
    Finding,
    Report,
    ReportKind,
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

Token = TableSas | AccountSas


def inspect_token(query: str, sent: IncomingRequest | None, facts: Facts, account: str = "") -> Report:
    """Inspect a SAS token; ``account`` is its account if known, as a token does not name it."""
    pairs = read_pairs(query)
    token, error = _read(query, pairs)
    name = sent.address.account if sent else account or _find_owner(token, facts)
    managed = facts.accounts.get(name)
    faults = list(_find_causes(token, sent, managed, facts))
    verdict = Verdict(error=error) if error else None
    if managed is not None and verdict is None:
        verdict = Verdict(_signing_key(token, managed), causes.first_error(faults))
    mistakes = [*_malformed(pairs, error), *([] if name else [finding(Mistake.ACCOUNT_NOT_NAMED)])]
    return Report(
        ReportKind.TOKEN,
        name,
        is_managed=managed is not None,
        parameters=[
            replace(it, value=mask(it.value)) if it.meaning is Meaning.SIGNATURE else it
            for it in explain(pairs)
        ],
        lines=_lines(token, name or "…"),
        token=replace(token, signature=""),
        verdict=verdict,
        findings=list(dict.fromkeys([*mistakes, *causes.findings_of(faults)])),
    )


def _find_causes(
    token: Token, sent: IncomingRequest | None, account: ManagedAccount | None, facts: Facts
) -> Iterator[Cause]:
    scheme, client = (sent.scheme, sent.client) if sent else (facts.scheme, facts.client)
    policy = None
    if account is not None:
        policy = find_policy(token, account.policies)
        yield from _of_signature(token, account, facts)
        yield from causes.of_keys(account)
        if sas.fingerprint(token) in account.blocked and _signing_key(token, account):
            yield Cause(sas.signature_blocked(), finding(Mistake.BLOCKED))
        for cause in causes.attempt(partial(sas.check_kind, token, account.kind)):
            yield cause._replace(finding=finding(Mistake.RANGE_IN_COSMOS, account=account.name))
        if isinstance(token, TableSas):
            yield from causes.of_policy(token, account)
        if is_orphaned(token, account.policies):
            yield Cause(sas.policy_not_found())
        yield from causes.attempt(
            partial(sas.authorize, token, policy, now=facts.now, scheme=scheme, address=client)
        )
    yield from causes.of_terms(token, policy or AccessPolicy(), scheme, client, facts.now)
    if account is not None:
        yield from causes.of_network(account, client)
    grant = causes.derive_grant(token, account)
    if sent is not None and grant is not None:
        is_by_policy = policy is not None and policy.permission is not None
        yield from causes.of_operation(
            sent, grant, account, token.identifier if is_by_policy and isinstance(token, TableSas) else ""
        )


def read_pairs(query: str) -> list[tuple[str, str]]:
    """Split a query string into name-value pairs in order, decoding leniently."""
    pieces = (piece.partition("=") for piece in query.removeprefix("?").split("&") if piece)
    return [(_decode(name), _decode(value)) for name, _, value in pieces]


def _decode(text: str) -> str:
    return unquote_to_bytes(text.strip().replace("+", " ")).decode("utf-8", "replace")


def _read(query: str, pairs: list[tuple[str, str]]) -> tuple[Token, StorageError | None]:
    try:
        token = sas.read(read_options(query.strip().removeprefix("?").encode()))
        if token is not None:
            return token, None
    except StorageError as error:
        return read_leniently(_tolerant(pairs)), error
    return read_leniently(_tolerant(pairs)), AuthenticationFailed()


def _tolerant(pairs: list[tuple[str, str]]) -> dict[str, str]:
    names = {name.lower(): name for name in SAS_NAMES}
    return {names[name.lower()]: value for name, value in pairs if name.lower() in names}


def _find_owner(token: Token, facts: Facts) -> str:
    """Return the account whose keys signed the token, or that has registered it."""
    fingerprint = sas.fingerprint(token)
    for account in facts.accounts.values():
        signed = sas.find_signing_key(token, account.name, [key.value for key in account.keys])
        if signed is not None or account.known(fingerprint) is not None:
            return account.name
    return next(iter(facts.accounts)) if len(facts.accounts) == 1 else ""


def _malformed(pairs: list[tuple[str, str]], error: StorageError | None) -> Iterator[Finding]:
    names = Counter(name for name, _ in pairs)
    for name in sorted(name for name, number in names.items() if number > 1 and name in SAS_NAMES):
        yield finding(Mistake.PARAMETER_TWICE, name=name)
    if any(name.startswith("sk") and name in SAS_NAMES for name in names):
        yield finding(Mistake.USER_DELEGATION)
        return
    for parameter in explain(pairs):
        if not parameter.is_well_formed:
            yield finding(Mistake.MALFORMED_PARAMETER, name=parameter.name, value=parameter.value)
    missing = [name for name in _needed(dict(pairs)) if not dict(pairs).get(name)]
    if missing and error is not None:
        yield finding(Mistake.PARAMETER_MISSING, names=", ".join(missing))


def _needed(options: dict[str, str]) -> tuple[str, ...]:
    if options.get("ss") or options.get("srt"):
        return ("sv", "ss", "srt", "sp", "se", "sig")
    return ("sv", "tn", "sig") if options.get("si") else ("sv", "tn", "sp", "se", "sig")


def _signing_key(token: Token, account: ManagedAccount) -> str:
    """Return the name of the accepted key that signed the token; "" if there is none."""
    keys = account.accepted_keys
    index = sas.find_signing_key(token, account.name, [key.value for key in keys])
    return "" if index is None else keys[index].name


def _of_signature(token: Token, account: ManagedAccount, facts: Facts) -> Iterator[Cause]:
    if _signing_key(token, account):
        return
    yield Cause(sas.signature_mismatch(token, account.name))
    known = account.known(sas.fingerprint(token))
    changed = [] if known is None else list(_changed(token, dict(known)))
    text, others = sas.string_to_sign(token, account.name), _other_texts(token, account.name, facts)
    yield from causes.explain(
        *(changed or explain_signature(token.signature, text.encode(), others, account, facts))
    )


def _changed(token: Token, known: dict[str, str]) -> Iterator[Finding]:
    """Yield the differences between a token and the registered token with the same signature."""
    now = dict(sas.to_parameters(token))
    for name in dict.fromkeys((*known, *now)):
        if name in SAS_NAMES and known.get(name, "") != now.get(name, ""):
            if known.get(name):
                yield finding(Mistake.PARAMETER_CHANGED, name=name, signed=known[name])
            else:
                yield finding(Mistake.PARAMETER_ADDED, name=name)


def _other_texts(token: Token, account: str, facts: Facts) -> Iterator[OtherText]:
    text = sas.string_to_sign(token, account)
    for name, mistake in confused_accounts(account, facts):
        yield OtherText(sas.string_to_sign(token, name).encode(), mistake)
    if isinstance(token, TableSas):
        doubled = sas.string_to_sign(token, f"{account}/{account}")
        yield OtherText(doubled.encode(), finding(Mistake.ACCOUNT_DOUBLED, account=account))
        cased = text.replace(f"/{account}/{token.folded}", f"/{account}/{token.table}", 1)
        yield OtherText(cased.encode(), finding(Mistake.TABLE_CASE, table=token.table))
    encoded = "\n".join(quote(line, safe="/") for line in text.split("\n"))
    yield OtherText(encoded.encode(), finding(Mistake.SIGNED_ENCODED))
    yield from with_other_newlines(text.encode())


def _lines(token: Token, account: str) -> list[SignedLine]:
    """Return the lines of the string to sign with their names."""
    if isinstance(token, TableSas):
        resource = "/table/…" if token.version >= NAMED_SERVICE else "/…"
        restricted = ("sip", "spr") if token.version >= RESTRICTED else ()
        names = ["sp", "st", "se", resource, "si", *restricted, "sv", "spk", "srk", "epk", "erk"]
    else:
        scope = ("ses",) if token.version >= SCOPED else ()
        names = ["…", "sp", "ss", "srt", "st", "se", "sip", "spr", "sv", *scope, ""]
    return name_lines(sas.string_to_sign(token, account).split("\n"), names)
