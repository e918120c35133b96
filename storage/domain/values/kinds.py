"""The kinds of accounts: Azure Table storage, and Azure Cosmos DB for Table, which differs in limits and answers.

https://learn.microsoft.com/azure/cosmos-db/table/faq
"""

from enum import StrEnum
from typing import Final

PROPERTY_LIMIT: Final = 252  # properties of an entity in storage accounts


class AccountKind(StrEnum):
    """Service that an account is compatible with; chosen at creation, never changed."""

    STORAGE = "storage"
    COSMOS = "cosmos"

    @property
    def property_limit(self) -> int | None:
        """The number of properties of an entity besides the system's; None: only its size is limited [inferred]."""
        return None if self is AccountKind.COSMOS else PROPERTY_LIMIT

    @property
    def entity_size_limit(self) -> int:
        """Bytes of an entity, by storage.domain.entities.entity."""
        return 2 * 1024 * 1024 if self is AccountKind.COSMOS else 1024 * 1024
