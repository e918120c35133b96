"""Authentication and authorization by account key, SAS or bearer token."""

from collections.abc import Sequence
from functools import lru_cache
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple

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
from storage.domain.sas import AccountSas, TableSas
from storage.protocol import bearer
from storage.protocol.incoming import IncomingRequest
from storage.runtime.catalog import KnownAccount
from storage.runtime.service import Service
from storage.runtime.threads import in_thread

if TYPE_CHECKING:
    from storage.access.identity import Identity


class Authorized(NamedTuple):
    account: KnownAccount
    grant: Grant
    credential: Credential


_CREDENTIALS: Final = {
    name: Credential(Authentication.KEY, name)
    for name in (*KEY_NAMES, *(retired_key_name(number) for number in (1, 2)))
}


def read_authentication(request: IncomingRequest) -> Authentication:
    """Return the authentication method that a request uses."""
    header = request.headers.get(b"authorization")
    if header is not None:
        return Authentication.BEARER if bearer.is_bearer(header) else Authentication.KEY
    return Authentication.SAS if "sig" in request.options else Authentication.ANONYMOUS


async def authorize(
    service: Service, account: KnownAccount | None, request: IncomingRequest, *, skew: float = 0.0
) -> Authorized:
    """Authorize a request by a clock that is ``skew`` seconds ahead; a missing account is like an invalid signature.

    Raises the error of the service, also for a client outside the account's networks.
    """
    authorized = await _authorize(service, account, request, time() + skew)
    networks = authorized.account.networks
    if networks and not is_within(request.client, networks):
        raise AuthorizationFailure
    return authorized


async def _authorize(
    service: Service, account: KnownAccount | None, request: IncomingRequest, now: float
) -> Authorized:
    header = request.headers.get(b"authorization")
    token = _read_sas(request.query) if "sig" in request.options else None
    if header is None and token is None:
        if service.identity is not None:
            raise bearer.token_required(service.identity.trust)
        raise AuthenticationFailed
    if header is not None and token is not None:
        raise AuthenticationFailed(AuthenticationErrorDetail="Two kinds of authorization came at once.")
    if token is not None:
        return await _verify_sas(service, account, request, token, now)
    assert header is not None
    if service.identity is not None and bearer.is_bearer(header):
        return await _verify_bearer_token(service.identity, account, request, header, now)
    return _verify_account_key(account, request, header, now)


def _verify_account_key(
    account: KnownAccount | None, request: IncomingRequest, header: bytes, now: float
) -> Authorized:
    authorization = read_authorization(header)
    signed = SignedRequest(
        request.method, request.path, request.query, request.headers, request.address.account
    )
    keys, names = _keys(account, now)
    key = verify(signed, authorization, keys, now)
    if account is None:
        raise AuthenticationFailed
    _check_keys_accepted(account)
    return Authorized(account, OWNER, _CREDENTIALS[names[key]])


def _keys(account: KnownAccount | None, now: float) -> tuple[Sequence[bytes], Sequence[str]]:
    """Return the accepted keys and their names."""
    if account is None:
        return (), ()
    if not account.retired:
        return account.keys, KEY_NAMES
    retired = [key for key in account.retired if now < key.until]
    return (*account.keys, *(key.key for key in retired)), (*KEY_NAMES, *(key.name for key in retired))


async def _verify_sas(
    service: Service,
    account: KnownAccount | None,
    request: IncomingRequest,
    presented: "_PresentedSas",
    now: float,
) -> Authorized:
    token, credential = presented
    name = request.address.account
    keys, _ = _keys(account, now)
    if account is None or sas.find_signing_key(token, name, keys) is None:
        raise sas.signature_mismatch(token, name)
    _check_keys_accepted(account)
    if account.blocked and credential.name in account.blocked:
        raise sas.signature_blocked()
    sas.check_kind(token, account.kind)
    policy = await _policy(service, account, token) if isinstance(token, TableSas) else None
    grant = sas.authorize(token, policy, now=now, scheme=request.scheme, address=request.client)
    return Authorized(account, grant, credential)


class _PresentedSas(NamedTuple):
    token: TableSas | AccountSas
    credential: Credential


@lru_cache(maxsize=512)
def _read_sas(query: bytes) -> _PresentedSas | None:
    """Parse a SAS, validating only its form."""
    token = sas.read(read_options(query))
    if token is None:
        return None
    return _PresentedSas(
        token, Credential(Authentication.SAS, sas.fingerprint(token), sas.to_parameters(token))
    )


async def _verify_bearer_token(
    identity: "Identity", account: KnownAccount | None, request: IncomingRequest, header: bytes, now: float
) -> Authorized:
    grant, subject = await bearer.grant(identity, header, request.scheme, request.address.account, now)
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
    policies = known.policies if known is not None else {}
    if known is not None and account.rehearser is not None:
        delay = account.rehearser.policy_delay(token.folded)
        former = await in_thread(account.rehearser.former_policies, known.id, delay) if delay else None
        policies = policies if former is None else former
    if token.identifier not in policies:
        raise sas.policy_not_found()
    return policies[token.identifier]


def _check_keys_accepted(account: KnownAccount) -> None:
    if not account.enabled:
        raise AccountIsDisabled
    if not account.shared_key_access:
        raise KeyBasedAuthenticationNotPermitted
