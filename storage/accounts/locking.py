"""Row locks on accounts, held until the transaction ends."""

from storage.accounts.refusals import AccountError
from storage.domain.errors import ServerBusy
from storage.domain.refusals import Reason
from storage.models import Account


def lock(account: Account) -> Account:
    """Lock an account's row for the transaction and return its current state; raises ServerBusy if it was deleted."""
    # no_key: rows that reference the account can still be written
    locked = Account.objects.select_for_update(no_key=True).filter(pk=account.pk).first()
    if locked is None:
        raise ServerBusy
    return locked


def lock_by_name(name: str) -> Account:
    """Lock the account with a name; raises AccountError if it does not exist."""
    account = lock_if_exists(name)
    if account is None:
        raise AccountError(Reason.NO_ACCOUNT, account=name)
    return account


def lock_if_exists(name: str) -> Account | None:
    return Account.objects.select_for_update(no_key=True).filter(name=name).first()
