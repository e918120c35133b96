"""Protocol dialect of an account: accepted requests and files, and the form of responses."""

from typing import Final, NamedTuple

from storage.domain.values.edm import FIRST_COSMOS_TICK, FIRST_TICK
from storage.domain.values.kinds import AccountKind

KEY_LENGTH_LIMIT: Final = 1024  # UTF-16 code units; the rule published last, older ones said 512 [doc]
LONGEST_KEY: Final = 2048  # UTF-16 code units of a key of either kind


class Dialect(NamedTuple):
    """Protocol rules of an account, determined once per request or operation."""

    kind: AccountKind = AccountKind.STORAGE
    key_limit: int = KEY_LENGTH_LIMIT  # UTF-16 code units of a key in a storage account
    # filters may have contains, endswith and isset, and times of accounts of either kind
    has_console_filters: bool = False

    @property
    def is_cosmos(self) -> bool:
        return self.kind is AccountKind.COSMOS

    @property
    def first_filter_tick(self) -> int:
        """Return the earliest time allowed in a filter."""
        return FIRST_COSMOS_TICK if self.is_cosmos or self.has_console_filters else FIRST_TICK


STORAGE: Final = Dialect()
COSMOS: Final = Dialect(AccountKind.COSMOS)
CONSOLE: Final = Dialect(has_console_filters=True)
WIDEST: Final = Dialect(key_limit=LONGEST_KEY)  # has the keys that an account of either kind may have
