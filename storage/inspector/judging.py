"""Whether the service would accept a request now, and its error if not, by the service's own rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage.domain import sas
from storage.domain.access.addresses import is_within
from storage.domain.access.grants import DELETES, OWNER, WRITES, Grant, Operation
from storage.domain.access.policies import AccessPolicy
from storage.domain.access.signature import SignedRequest, read_authorization, verify
from storage.domain.errors import (
    AccountIsDisabled,
    AuthenticationFailed,
    AuthorizationFailure,
    InsufficientAccountPermissions,
    KeyBasedAuthenticationNotPermitted,
    StorageError,
)
from storage.domain.requests.options import read_options
from storage.domain.requests.routes import (
    Address,
    Target,
    TargetKind,
    check_target,
    resolve_operation,
    resolve_target,
)
from storage.domain.sas import AccountSas, TableSas
from storage.domain.values.kinds import AccountKind
from storage.inspector.facts import Facts, Key, ManagedAccount
from storage.inspector.reports import Verdict


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request as it would arrive; ``is_a_request`` is False for a URL that is only the carrier of a token."""

    address: Address
    method: str
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes] = field(repr=False)
    scheme: str
    client: str
    is_a_request: bool = True

    @property
    def signed(self) -> SignedRequest:
        return SignedRequest(self.method, self.path, self.query, self.headers, self.address.account)

    @property
    def effective_method(self) -> str:
        """The method, even if tunnelled through POST."""
        tunnelled = self.headers.get(b"x-http-method", b"")
        return tunnelled.decode("latin-1").upper() if tunnelled and self.method == "POST" else self.method


def judge_request(sent: IncomingRequest, account: ManagedAccount, facts: Facts) -> Verdict:
    """Judge a request with an Authorization header."""
    name = ""
    try:
        if "sig" in read_options(sent.query):
            raise AuthenticationFailed(AuthenticationErrorDetail="Two kinds of authorization came at once.")
        accepted = _accepted(account)
        authorization = read_authorization(sent.headers[b"authorization"])
        index = verify(sent.signed, authorization, [key.value for key in accepted], facts.now)
        name = accepted[index].name
        check_account(account, sent.client)
        _check_operation(sent, account, OWNER)
    except StorageError as error:
        return Verdict(name, error)
    return Verdict(name, grant=OWNER)


def judge_token(
    token: TableSas | AccountSas, sent: IncomingRequest | None, account: ManagedAccount, facts: Facts
) -> Verdict:
    """Judge a token, together with the request ``sent`` if there is one."""
    name, grant = "", None
    try:
        accepted = _accepted(account)
        index = sas.find_signing_key(token, account.name, [key.value for key in accepted])
        if index is None:
            raise sas.signature_mismatch(token, account.name)
        name = accepted[index].name
        _check_keys(account)
        if sas.fingerprint(token) in account.blocked:
            raise sas.signature_blocked()
        sas.check_kind(token, account.kind)
        scheme, client = (sent.scheme, sent.client) if sent else (facts.scheme, facts.client)
        grant = sas.authorize(
            token, find_policy(token, account), now=facts.now, scheme=scheme, address=client
        )
        _check_network(account, client)
        if sent is not None:
            _check_operation(sent, account, grant)
    except StorageError as error:
        return Verdict(name, error, grant)
    return Verdict(name, grant=grant)


def find_policy(token: TableSas | AccountSas, account: ManagedAccount) -> AccessPolicy | None:
    """Return the policy that the token references, None if none; raises AuthenticationFailed if it does not exist."""
    if not isinstance(token, TableSas) or not token.identifier:
        return None
    policies = account.policies.get(token.folded, {})
    if token.identifier not in policies:
        raise sas.policy_not_found()
    return policies[token.identifier]


def resolve_request(
    sent: IncomingRequest, account: str, kind: AccountKind
) -> tuple[Target, Operation | None]:
    """Resolve a request to target and operation; raises the service's error for an invalid path."""
    resource = resolve_target(sent.address.rest, sent.effective_method, account, kind)
    options = read_options(sent.query)
    return resource, resolve_operation(
        resource, sent.effective_method, options, conditional=b"if-match" in sent.headers
    )


def is_secondary_write(sent: IncomingRequest, kind: AccountKind) -> bool:
    """Whether it is refused for the endpoint; in Cosmos accounts both may be written to."""
    return sent.address.secondary and sent.method not in ("GET", "HEAD") and kind is AccountKind.STORAGE


def _accepted(account: ManagedAccount) -> list[Key]:
    return [key for key in account.keys if key.is_accepted]


def check_account(account: ManagedAccount, client: str) -> None:
    _check_keys(account)
    _check_network(account, client)


def _check_network(account: ManagedAccount, client: str) -> None:
    if account.networks and not is_within(client, account.networks):
        raise AuthorizationFailure


def _check_keys(account: ManagedAccount) -> None:
    if not account.is_enabled:
        raise AccountIsDisabled
    if not account.accepts_keys:
        raise KeyBasedAuthenticationNotPermitted


def _check_operation(sent: IncomingRequest, account: ManagedAccount, grant: Grant) -> None:
    if not sent.is_a_request:
        resource, _ = resolve_request(sent, account.name, account.kind)
        check_target(grant, None, resource)
        return
    if is_secondary_write(sent, account.kind):
        raise InsufficientAccountPermissions
    resource, operation = resolve_request(sent, account.name, account.kind)
    check_target(grant, operation, resource)
    if resource.kind is TargetKind.ENTITY and operation is not None:
        grant.check_key(resource.key)
    if account.is_read_only and operation in WRITES | DELETES:
        raise InsufficientAccountPermissions
