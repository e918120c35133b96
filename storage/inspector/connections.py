"""Connection strings: their parts, and their problems."""

import binascii
import hmac
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from storage.domain.errors import AuthenticationFailed
from storage.domain.requests.routes import SECONDARY
from storage.domain.values.names import DEVELOPMENT_ACCOUNT, is_account_name
from storage.inspector import causes
from storage.inspector.facts import Facts, ManagedAccount
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import (
    ConnectionSetting,
    Finding,
    Report,
    ReportKind,
    Verdict,
    finding,
    mask,
)
from storage.inspector.signatures import candidate_keys
from storage.inspector.tokens import inspect_token

_ENDPOINTS: Final = [
    f"{service}{secondary}Endpoint"
    for service in ("Blob", "Queue", "File", "Table")
    for secondary in ("", "Secondary")
]
_SECRET: Final = ("AccountKey", "SharedAccessSignature")
_NAMES: Final = {
    name.lower(): name
    for name in (
        *("DefaultEndpointsProtocol", "AccountName", "EndpointSuffix"),
        *("UseDevelopmentStorage", "DevelopmentStorageProxyUri", *_ENDPOINTS, *_SECRET),
    )
}


def inspect_connection(text: str, facts: Facts) -> Report:
    settings: list[ConnectionSetting] = []
    values: dict[str, str] = {}
    for piece in filter(None, map(str.strip, text.split(";"))):
        name, equals, value = piece.partition("=")
        known = _NAMES.get(name.strip().lower())
        if known is None or not equals:
            settings.append(_unknown(name, equals, value))
            continue
        values.setdefault(known, value.strip())
        settings.append(ConnectionSetting(known, mask(value.strip()) if known in _SECRET else value.strip()))
    name = _account_name(values)
    account = facts.accounts.get(name)
    mistakes = [setting.problem for setting in settings if setting.problem]
    mistakes += _find_mistakes(values, name, account, facts)
    if signature := values.get("SharedAccessSignature", "").removeprefix("?"):
        report = inspect_token(signature, None, facts, name)
        mistakes += report.findings
        return replace(report, kind=ReportKind.CONNECTION, settings=settings, findings=mistakes)
    verdict = None if account is None else _judge(_decode_key(values), account, facts)
    return Report(
        ReportKind.CONNECTION,
        name,
        is_managed=account is not None,
        settings=settings,
        verdict=verdict,
        findings=mistakes,
    )


def _unknown(name: str, equals: str, value: str) -> ConnectionSetting:
    # it may be a fragment of a secret, so only its beginning is shown
    if not equals:
        shown = name.strip()[:6]
        return ConnectionSetting(shown, "", finding(Mistake.PART_MALFORMED, text=shown))
    shown = name.strip()[:24]
    return ConnectionSetting(shown, mask(value) if value else "", finding(Mistake.PART_UNKNOWN, name=shown))


def _is_of_development(values: Mapping[str, str]) -> bool:
    return values.get("UseDevelopmentStorage", "").lower() == "true"


def _account_name(values: Mapping[str, str]) -> str:
    if "AccountName" in values:
        return values["AccountName"]
    if _is_of_development(values):
        return DEVELOPMENT_ACCOUNT
    endpoint = values.get("TableEndpoint", "")
    path = urlsplit(endpoint).path if _is_url(endpoint) else ""
    return path.strip("/").partition("/")[0].removesuffix(SECONDARY)


def _find_mistakes(
    values: Mapping[str, str], name: str, account: ManagedAccount | None, facts: Facts
) -> Iterator[Finding]:
    if _is_of_development(values):
        return
    if not is_account_name(name):
        yield finding(Mistake.NO_ACCOUNT_NAME)
    key = _decode_key(values)
    if "AccountKey" in values and key is None:
        yield finding(Mistake.KEY_NOT_BASE64)
    elif account is not None and key is not None:
        same = (it.mistake for it in candidate_keys(account, facts) if hmac.compare_digest(it.value, key))
        mistake = next(same, finding(Mistake.KEY_UNKNOWN, account=name))
        if mistake is not None:
            yield mistake
    if not values.keys() & {*_SECRET}:
        yield finding(Mistake.NO_CREDENTIAL)
    yield from _of_endpoint(values, name, facts)


def _decode_key(values: Mapping[str, str]) -> bytes | None:
    try:
        return b64decode(values.get("AccountKey", ""), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _of_endpoint(values: Mapping[str, str], account: str, facts: Facts) -> Iterator[Finding]:
    endpoint = values.get("TableEndpoint", "")
    if not endpoint:
        address = f"{account}.table.{values.get('EndpointSuffix', 'core.windows.net')}"
        here = f"{facts.scheme}://{facts.host}/{account}"
        yield finding(Mistake.NO_TABLE_ENDPOINT, address=address, here=here)
    elif not _is_url(endpoint):
        yield finding(Mistake.ENDPOINT_MALFORMED, endpoint=endpoint)
    elif not (named := _addressed_account(endpoint, facts)):
        right = f"{endpoint.rstrip('/')}/{account}"
        yield finding(Mistake.ENDPOINT_WITHOUT_ACCOUNT, endpoint=endpoint, right=right)
    elif named.removesuffix(SECONDARY) != account:
        yield finding(Mistake.ENDPOINT_OTHER_ACCOUNT, named=named, account=account)


def _addressed_account(endpoint: str, facts: Facts) -> str:
    parts = urlsplit(endpoint)
    host = (parts.hostname or "").lower()
    if any(host.endswith(f".{suffix}") for suffix in facts.suffixes):
        return host.partition(".")[0]
    return parts.path.strip("/").partition("/")[0]


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme.lower() in ("http", "https") and bool(parts.hostname)


def _judge(value: bytes | None, account: ManagedAccount, facts: Facts) -> Verdict:
    """Return the verdict on requests signed with the key of a connection string."""
    key = next((key for key in account.keys if hmac.compare_digest(key.value, value or b"")), None)
    if key is None or not key.is_accepted:
        return Verdict(key.name if key else "", AuthenticationFailed())
    refusals = [*causes.of_keys(account), *causes.of_network(account, facts.client)]
    return Verdict(key.name, causes.first_error(refusals))
