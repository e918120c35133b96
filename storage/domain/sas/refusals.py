"""What is answered to a token that is well-formed and no good, whatever the time is."""

from storage.domain.errors import AuthenticationFailed
from storage.domain.sas.signing import string_to_sign
from storage.domain.sas.tokens import AccountSas, TableSas


def not_signed(token: TableSas | AccountSas, account: str) -> AuthenticationFailed:
    """By no key of the account."""
    text = string_to_sign(token, account)
    return AuthenticationFailed(
        AuthenticationErrorDetail=f"Signature did not match. String to sign used was {text}"
    )


def no_policy() -> AuthenticationFailed:
    """The one that its identifier names is not there."""
    return AuthenticationFailed(
        AuthenticationErrorDetail="There is no stored access policy of this identifier."
    )


def is_blocked() -> AuthenticationFailed:
    """Somebody blocked it here; the service has no such thing."""
    return AuthenticationFailed(AuthenticationErrorDetail="The signature has been blocked.")
