"""Why an operation on an account is refused."""

from storage.domain.refusals import Reason, Refused


class AccountError(Refused):
    """An operation on an account is refused."""


class AccountExists(AccountError):
    """The name is taken."""


class AccountIsBusy(AccountError):
    """Another request makes or deletes an account of this name."""


class AccountIsProtected(AccountError):
    """A protected account cannot be removed."""


class AccountHasTables(AccountError):
    """An account with tables is only removed when the caller asks to remove them too."""


class AccountKindIsFixed(AccountError):
    """An account never changes its kind."""


class SealedOtherwise(AccountError):
    """A key was sealed with another secret than the one of this server."""


class AccountExpired(AccountError):
    """An account whose lifetime is over cannot be enabled."""


def busy(name: str) -> AccountIsBusy:
    return AccountIsBusy(Reason.ACCOUNT_BUSY, account=name)
