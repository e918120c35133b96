"""Context of values that people enter, in a form, a pasted text or a file."""

from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Self

from storage.domain.values.kinds import AccountKind


@dataclass(frozen=True, slots=True)
class InputContext:
    """Time of an input, whose zone is that of times without one, and the kind of the account, which limits values."""

    now: datetime
    kind: AccountKind = AccountKind.STORAGE

    @property
    def is_cosmos(self) -> bool:
        return self.kind is AccountKind.COSMOS

    @classmethod
    def of_any_account(cls, now: datetime) -> Self:
        """Return the context of values that an account of either kind may have."""
        return cls(now, AccountKind.COSMOS)

    def in_zone(self, zone: tzinfo) -> Self:
        return replace(self, now=self.now.astimezone(zone))
