"""Refusals of operations on accounts."""

from storage.domain.refusals import Reason, Refused


class AccountError(Refused):
    """An operation on an account is refused."""


class AccountExists(AccountError):
    """The name is taken."""


class AccountIsBusy(AccountError):
    """Another request is creating or deleting an account of this name."""


class AccountIsProtected(AccountError):
    """A protected account cannot be removed."""


class AccountHasTables(AccountError):
    """An account with tables is deleted only if the caller asks to delete them too."""


class AccountKindIsFixed(AccountError):
    """An account never changes its kind."""


class SealedOtherwise(AccountError):
    """A key was encrypted with a different secret than this server's."""


class AccountExpired(AccountError):
    """An expired account cannot be enabled."""


def busy(name: str) -> AccountIsBusy:
    return AccountIsBusy(Reason.ACCOUNT_BUSY, account=name)
