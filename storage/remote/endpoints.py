"""Address of another table service and its credentials, parsed from pasted text."""

import binascii
import re
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from storage.domain.refusals import Reason, Refused
from storage.domain.values.names import DEVELOPMENT_ACCOUNT

_DEVELOPMENT: Final = (
    f"DefaultEndpointsProtocol=http;AccountName={DEVELOPMENT_ACCOUNT};"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    f"TableEndpoint=http://127.0.0.1:10002/{DEVELOPMENT_ACCOUNT};"
)


# names of accounts of Azure, Cosmos DB and Azurite, with the ending of a secondary; one becomes a part of a header
_is_account: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", re.ASCII).fullmatch


class EndpointMalformed(Refused):
    """The text is not a table service with credentials."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Table service endpoint with an account key, SAS or bearer token."""

    url: str  # without a slash at its end, and without a query
    account: str  # the account of the key
    key: bytes = field(default=b"", repr=False)
    sas: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)
    table: str = ""  # the table that the address or the SAS is limited to
    # for the change feed of another Tablero, a token of its management API
    feed_token: str = field(default="", repr=False)

    @property
    def has_credentials(self) -> bool:
        return bool(self.key or self.sas or self.bearer)


def looks_remote(text: str) -> bool:
    """Return whether a text is a URL or connection string, not an account name or file."""
    return "://" in text or "=" in text


def read_endpoint(text: str, bearer: str = "") -> Endpoint:
    """Parse a connection string, or a URL with a SAS or with a bearer token; raises EndpointMalformed."""
    text = text.strip()
    is_url = text.lower().startswith(("http://", "https://"))
    endpoint = _read_url(text, bearer) if is_url else _read_connection_string(text, bearer)
    if not endpoint.has_credentials:
        raise EndpointMalformed(Reason.REMOTE_NO_CREDENTIALS)
    if not _is_account(endpoint.account):
        raise EndpointMalformed(Reason.REMOTE_ACCOUNT)
    return endpoint


def read_token(text: str) -> str:
    """Validate a bearer token; raises EndpointMalformed, without quoting it, if it cannot be sent in a header."""
    text = text.strip()
    if not text.isascii() or not text.isprintable() or " " in text:
        raise EndpointMalformed(Reason.REMOTE_NO_CREDENTIALS)
    return text


def _read_connection_string(text: str, bearer: str) -> Endpoint:
    values: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals:
            raise EndpointMalformed(Reason.REMOTE_CONNECTION_STRING)
        values.setdefault(name.strip().lower(), value.strip())
    if values.get("usedevelopmentstorage", "").lower() == "true":
        return _read_connection_string(_DEVELOPMENT, bearer)
    account, url = values.get("accountname", ""), values.get("tableendpoint", "")
    if not url and not account:
        raise EndpointMalformed(Reason.REMOTE_CONNECTION_STRING)
    scheme = values.get("defaultendpointsprotocol", "https")
    url = url or f"{scheme}://{account}.table.{values.get('endpointsuffix', 'core.windows.net')}"
    signature = values.get("sharedaccesssignature", "")
    endpoint = _read_url(f"{url.rstrip('/')}/?{signature.removeprefix('?')}", bearer, account)
    key = _read_key(values["accountkey"]) if "accountkey" in values else b""
    return Endpoint(endpoint.url, endpoint.account, key, endpoint.sas, bearer, endpoint.table)


def _read_key(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise EndpointMalformed(Reason.REMOTE_KEY) from None


def _read_url(text: str, bearer: str, account: str = "") -> Endpoint:
    try:
        url = urlsplit(text)
        host, port = url.hostname or "", url.port
    except ValueError:
        raise EndpointMalformed(Reason.REMOTE_URL) from None
    is_plain = text.isascii() and text.isprintable() and " " not in text
    if url.scheme.lower() not in ("http", "https") or not host or not is_plain or "@" in url.netloc:
        raise EndpointMalformed(Reason.REMOTE_URL)
    base, names = [segment for segment in url.path.split("/") if segment], list[str]()
    if not account and _has_service_host(host):
        account, base, names = host.partition(".")[0], [], base
    elif not account:
        if not base:
            raise EndpointMalformed(Reason.REMOTE_URL_PATH)
        account, base, names = unquote(base[0]), base[:1], base[1:]
    if len(names) > 1:
        raise EndpointMalformed(Reason.REMOTE_URL_PATH)
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port is None else f"{shown}:{port}"
    sas = url.query if "sig=" in url.query else ""
    limited = next((value for name, value in parse_qsl(sas) if name == "tn"), "")
    table = unquote(names[0]) if names else limited
    address = "/".join((f"{url.scheme.lower()}://{netloc}", *base))
    return Endpoint(address, account, sas=sas, bearer=bearer, table=table)


def _has_service_host(host: str) -> bool:
    """Return whether the host name contains the account, as for Azure and Cosmos DB."""
    return ".table." in host or ".tables." in host
