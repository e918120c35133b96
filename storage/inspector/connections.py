"""Connection strings: their parts, and what is wrong with them."""

import binascii
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from storage.domain.requests.routes import SECONDARY
from storage.domain.values.names import DEVELOPMENT_ACCOUNT, is_account_name
from storage.inspector.facts import Facts, Key, ManagedAccount
from storage.inspector.reports import ConnectionSetting, Finding, Mistake, finding, mask

_NAMES: Final = {
    name.lower(): name
    for name in (
        "DefaultEndpointsProtocol",
        "AccountName",
        "AccountKey",
        "SharedAccessSignature",
        "EndpointSuffix",
        "UseDevelopmentStorage",
        "DevelopmentStorageProxyUri",
        "BlobEndpoint",
        "QueueEndpoint",
        "FileEndpoint",
        "TableEndpoint",
        "TableSecondaryEndpoint",
        "BlobSecondaryEndpoint",
        "QueueSecondaryEndpoint",
        "FileSecondaryEndpoint",
    )
}
_SECRET: Final = frozenset({"AccountKey", "SharedAccessSignature"})


@dataclass(frozen=True, slots=True)
class Connection:
    settings: tuple[ConnectionSetting, ...]
    values: Mapping[str, str] = field(repr=False)
    account: str

    @property
    def signature(self) -> str:
        return self.values.get("SharedAccessSignature", "").removeprefix("?")


def read_connection(text: str) -> Connection:
    settings: list[ConnectionSetting] = []
    values: dict[str, str] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(";"))):
        name, equals, value = piece.partition("=")
        known = _NAMES.get(name.strip().lower())
        if known is None or not equals:
            settings.append(_unknown(name, equals, value))
            continue
        twice = finding(Mistake.PART_TWICE, name=known) if known in values else None
        values.setdefault(known, value.strip())
        shown = mask(value.strip()) if known in _SECRET else value.strip()
        settings.append(ConnectionSetting(known, shown, twice))
    return Connection(tuple(settings), values, _account_of(values))


def _unknown(name: str, equals: str, value: str) -> ConnectionSetting:
    # it may be a fragment of a secret, so only its beginning is shown
    shown = name.strip()[:24] if equals else name.strip()[:6]
    mistake = (
        finding(Mistake.PART_UNKNOWN, name=shown) if equals else finding(Mistake.PART_MALFORMED, text=shown)
    )
    return ConnectionSetting(shown, mask(value) if value else "", mistake)


def _account_of(values: Mapping[str, str]) -> str:
    if "AccountName" in values:
        return values["AccountName"]
    if values.get("UseDevelopmentStorage", "").lower() == "true":
        return DEVELOPMENT_ACCOUNT
    path = urlsplit(_endpoint(values)).path if _is_url(_endpoint(values)) else ""
    return path.strip("/").partition("/")[0].removesuffix(SECONDARY)


def _endpoint(values: Mapping[str, str]) -> str:
    return values.get("TableEndpoint", "")


def find_mistakes(connection: Connection, account: ManagedAccount | None, facts: Facts) -> Iterator[Finding]:
    values = connection.values
    if values.get("UseDevelopmentStorage", "").lower() == "true":
        return
    if not connection.account or not is_account_name(connection.account):
        yield finding(Mistake.NO_ACCOUNT_NAME)
    if "AccountKey" in values:
        yield from _of_key(values["AccountKey"], account, facts)
    elif "SharedAccessSignature" not in values:
        yield finding(Mistake.NO_CREDENTIAL)
    yield from _of_endpoint(connection, facts)


def decode_key(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _of_key(text: str, account: ManagedAccount | None, facts: Facts) -> Iterator[Finding]:
    value = decode_key(text)
    if value is None:
        yield finding(Mistake.KEY_NOT_BASE64)
    elif account is not None:
        key = next((key for key in account.keys if key.value == value), None)
        if key is None:
            yield _whose(value, account, facts)
        elif not key.is_accepted:
            yield finding(Mistake.RETIRED_KEY, key=key.name)


def _whose(value: bytes, account: ManagedAccount, facts: Facts) -> Finding:
    if facts.development is not None and facts.development.value == value:
        return finding(Mistake.DEVELOPMENT_KEY)
    for other in facts.accounts.values():
        for key in other.keys:
            if key.value == value and other.name != account.name:
                return finding(Mistake.OTHER_ACCOUNT_KEY, key=key.name, account=other.name)
    return finding(Mistake.KEY_UNKNOWN, account=account.name)


def find_key(connection: Connection, account: ManagedAccount) -> Key | None:
    """Return the key of the account that the connection string contains."""
    value = decode_key(connection.values.get("AccountKey", ""))
    return next((key for key in account.keys if key.value == value), None)


def _of_endpoint(connection: Connection, facts: Facts) -> Iterator[Finding]:
    endpoint, account = _endpoint(connection.values), connection.account
    if not endpoint:
        suffix = connection.values.get("EndpointSuffix", "core.windows.net")
        yield finding(
            Mistake.NO_TABLE_ENDPOINT,
            address=f"{account}.table.{suffix}",
            here=f"{facts.scheme}://{facts.host}/{account}",
        )
        return
    if not _is_url(endpoint):
        yield finding(Mistake.ENDPOINT_MALFORMED, endpoint=endpoint)
        return
    parts = urlsplit(endpoint)
    protocol = connection.values.get("DefaultEndpointsProtocol", parts.scheme).lower()
    if protocol != parts.scheme.lower():
        yield finding(Mistake.PROTOCOL_DIFFERS, protocol=protocol, endpoint=endpoint)
    host = (parts.hostname or "").lower()
    if any(host.endswith(f".{suffix}") for suffix in facts.suffixes):
        named = host.partition(".")[0]
        if named.removesuffix(SECONDARY) != account:
            yield finding(Mistake.ENDPOINT_OTHER_ACCOUNT, named=named, account=account)
        return
    named = parts.path.strip("/").partition("/")[0]
    if not named:
        yield finding(
            Mistake.ENDPOINT_WITHOUT_ACCOUNT, endpoint=endpoint, right=f"{endpoint.rstrip('/')}/{account}"
        )
    elif named.removesuffix(SECONDARY) != account:
        yield finding(Mistake.ENDPOINT_OTHER_ACCOUNT, named=named, account=account)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
