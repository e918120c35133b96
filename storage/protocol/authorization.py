"""Who sent a request, and whether that account may have it done."""

from collections.abc import Mapping
from time import time

from storage.domain.errors import (
    AccountIsDisabled,
    AuthenticationFailed,
    InsufficientAccountPermissions,
)
from storage.operations.catalog import KnownAccount
from storage.operations.service import Service
from storage.protocol.routes import Address
from storage.protocol.signature import SignedRequest, read_authorization, verify


async def authorize(
    service: Service, address: Address, method: str, path: bytes, query: bytes, headers: Mapping[bytes, bytes]
) -> KnownAccount:
    """The account, once the signature is proven to be made with one of its keys."""
    header = headers.get(b"authorization")
    if header is None:
        raise AuthenticationFailed
    authorization = read_authorization(header)
    account = await service.account(address.account)
    signed = SignedRequest(method, path, query, headers, address.account)
    verify(signed, authorization, account.keys if account is not None else (), time())
    if account is None:
        raise AuthenticationFailed
    if not account.enabled:
        raise AccountIsDisabled
    if address.secondary and method not in ("GET", "HEAD"):
        raise InsufficientAccountPermissions
    return account
