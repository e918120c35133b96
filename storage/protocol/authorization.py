"""Who sent a request, and what it may have done: by an account key, a shared access signature or a bearer token."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from time import time
from typing import Final, NamedTuple

from storage.domain import sas
from storage.domain.access.addresses import is_within
from storage.domain.access.grants import OWNER, Grant
from storage.domain.access.policies import AccessPolicy
from storage.domain.access.signature import SignedRequest, read_authorization, verify
from storage.domain.errors import (
    AccountIsDisabled,
    AuthenticationFailed,
    AuthorizationFailure,
    KeyBasedAuthenticationNotPermitted,
    TableNotFound,
)
from storage.domain.requests.observed import KEY_NAMES, Authentication, Credential, retired_key_name
from storage.domain.requests.options import read_options
from storage.domain.requests.routes import Address
from storage.domain.sas import AccountSas, TableSas
from storage.operations.catalog import KnownAccount
from storage.operations.identity import Identity
from storage.operations.service import Service
from storage.protocol import challenge


class Sent(NamedTuple):
    """What decides about a request before its resource is looked at; ``path`` and ``query`` as on the wire.

    ``client`` is the address it came from, ``scheme`` the one it came by.
    """

    address: Address
    method: str
    path: bytes
    query: bytes
    options: Mapping[str, str]
    headers: Mapping[bytes, bytes]
    scheme: str
    client: str


class Authorized(NamedTuple):
    account: KnownAccount
    grant: Grant
    credential: Credential


_CREDENTIALS: Final = {
    name: Credential(Authentication.KEY, name)
    for name in (*KEY_NAMES, *(retired_key_name(number) for number in (1, 2)))
}


def authentication(sent: Sent) -> Authentication:
    """How the caller tries to prove who it is."""
    header = sent.headers.get(b"authorization")
    if header is not None:
        return Authentication.BEARER if challenge.is_bearer(header) else Authentication.KEY
    return Authentication.SAS if "sig" in sent.options else Authentication.ANONYMOUS


async def authorize(service: Service, account: KnownAccount | None, sent: Sent) -> Authorized:
    """``account`` is the addressed one; that there is none is told to nobody."""
    authorized = await _authorize(service, account, sent)
    networks = authorized.account.networks
    if networks and not is_within(sent.client, networks):
        raise AuthorizationFailure
    return authorized


async def _authorize(service: Service, account: KnownAccount | None, sent: Sent) -> Authorized:
    header = sent.headers.get(b"authorization")
    token = _read_token(sent.query) if "sig" in sent.options else None
    if header is None and token is None:
        if service.identity is not None:
            raise challenge.required(service.identity.trust)
        raise AuthenticationFailed
    if header is not None and token is not None:
        raise AuthenticationFailed(AuthenticationErrorDetail="Two kinds of authorization came at once.")
    if token is not None:
        return await _by_token(service, account, sent, token)
    assert header is not None
    if service.identity is not None and challenge.is_bearer(header):
        return await _by_bearer(service.identity, account, sent, header)
    return _by_key(account, sent, header)


def _by_key(account: KnownAccount | None, sent: Sent, header: bytes) -> Authorized:
    authorization = read_authorization(header)
    signed = SignedRequest(sent.method, sent.path, sent.query, sent.headers, sent.address.account)
    now = time()
    keys, names = _keys(account, now)
    key = verify(signed, authorization, keys, now)
    if account is None:
        raise AuthenticationFailed
    _check_keys_accepted(account)
    return Authorized(account, OWNER, _CREDENTIALS[names[key]])


def _keys(account: KnownAccount | None, now: float) -> tuple[Sequence[bytes], Sequence[str]]:
    """The keys that are accepted, and what they are called."""
    if account is None:
        return (), ()
    if not account.retired:
        return account.keys, KEY_NAMES
    old = [key for key in account.retired if now < key.until]
    return (*account.keys, *(key.key for key in old)), (*KEY_NAMES, *(key.name for key in old))


async def _by_token(
    service: Service, account: KnownAccount | None, sent: Sent, presented: "_Presented"
) -> Authorized:
    token, credential = presented
    name = sent.address.account
    keys, _ = _keys(account, time())
    if account is None or sas.find_signing_key(token, name, keys) is None:
        raise sas.signature_mismatch(token, name)
    _check_keys_accepted(account)
    if account.blocked and credential.name in account.blocked:
        raise sas.signature_blocked()
    policy = await _policy(service, account, token) if isinstance(token, TableSas) else None
    grant = sas.authorize(token, policy, now=time(), scheme=sent.scheme, address=sent.client)
    return Authorized(account, grant, credential)


class _Presented(NamedTuple):
    token: TableSas | AccountSas
    credential: Credential


@lru_cache(maxsize=512)
def _read_token(query: bytes) -> _Presented | None:
    """What one client sends with each of its requests; that it is well-formed, not that it is good."""
    token = sas.read(read_options(query))
    if token is None:
        return None
    return _Presented(token, Credential(Authentication.SAS, sas.fingerprint(token), sas.to_parameters(token)))


async def _by_bearer(
    identity: Identity, account: KnownAccount | None, sent: Sent, header: bytes
) -> Authorized:
    grant, subject = await challenge.grant(identity, header, sent.scheme, sent.address.account, time())
    if account is None:
        raise AuthenticationFailed
    if not account.enabled:
        raise AccountIsDisabled
    return Authorized(account, grant, Credential(Authentication.BEARER, subject))


async def _policy(service: Service, account: KnownAccount, token: TableSas) -> AccessPolicy | None:
    if not token.identifier:
        return None
    try:
        known = await service.table(account, token.folded)
    except TableNotFound:
        known = None
    if known is None or token.identifier not in known.policies:
        raise sas.policy_not_found()
    return known.policies[token.identifier]


def _check_keys_accepted(account: KnownAccount) -> None:
    if not account.enabled:
        raise AccountIsDisabled
    if not account.shared_key_access:
        raise KeyBasedAuthenticationNotPermitted
