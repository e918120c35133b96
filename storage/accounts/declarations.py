"""Accounts declared in the server's options."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from storage.accounts import accounts, key_dates
from storage.accounts.locking import lock_if_exists
from storage.accounts.refusals import AccountError, AccountKindIsFixed
from storage.accounts.sealed_keys import decode_key, keys_of
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.domain.access.actor import SERVER
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import DEVELOPMENT_ACCOUNT

_LONGEST: Final = 24  # characters of a name


@dataclass(frozen=True, slots=True)
class AccountKeys:
    """Declared account; a missing secondary key is kept, or generated."""

    name: str
    primary: bytes
    secondary: bytes | None = None
    kind: AccountKind = AccountKind.STORAGE


def read_declaration(text: str) -> list[AccountKeys]:
    """Read `name:key1[:key2];name2@cosmos:…`: the format of AZURITE_ACCOUNTS, and a kind after the name."""
    return [_read_account(part.strip()) for part in text.split(";") if part.strip()]


def _read_account(text: str) -> AccountKeys:
    named, *keys = text.split(":")
    name, _, kind = named.partition("@")
    if len(name) > _LONGEST:
        raise AccountError(Reason.ACCOUNT_NAME, account="…")  # a key may have been written in its place
    if not 1 <= len(keys) <= 2:
        raise AccountError(Reason.DECLARATION_MALFORMED, account=name)
    if kind not in ("", *AccountKind):
        raise AccountError(Reason.UNKNOWN_KIND, account=name, kind=kind)
    return AccountKeys(
        name, decode_key(keys[0]), decode_key(keys[1]) if keys[1:] else None, AccountKind(kind or "storage")
    )


def ensure(declared: Iterable[AccountKeys]) -> None:
    """Create or update the declared accounts; other accounts do not change."""
    for keys in declared:
        accounts.check_name(keys.name)
        accounts.check_keys(keys.name, keys.primary, keys.secondary)
        account = accounts.by_name(keys.name)
        if account is not None:
            if account.kind != keys.kind:
                raise AccountKindIsFixed(
                    Reason.ACCOUNT_KIND_IS_FIXED, account=keys.name, kind=account.kind, wanted=keys.kind
                )
            primary, secondary = keys_of(account)
            if primary == keys.primary and keys.secondary in (None, secondary):
                continue
        with invalidating_catalogs():
            former = lock_if_exists(keys.name)
            account = former or accounts.unsaved(
                keys.name, keys.kind, may_rehearse=keys.name == DEVELOPMENT_ACCOUNT
            )
            accounts.store(account, keys.primary, keys.secondary)
            verb = AccountVerb.CREATE if former is None else AccountVerb.KEY_ROTATE
            activity.record(verb, SERVER, account=account, detail={"declared": True})
            if former is not None:
                key_dates.note_rotation(account, key_dates.NUMBERS)
