"""Kinds of accounts: Azure Table storage and Cosmos DB for Table, with different limits and responses."""

from enum import StrEnum
from typing import Final

PROPERTY_LIMIT: Final = 252  # properties of an entity in storage accounts


class AccountKind(StrEnum):
    """Service that an account is compatible with; chosen at creation, never changed."""

    STORAGE = "storage"
    COSMOS = "cosmos"

    @property
    def property_limit(self) -> int | None:
        """Return the maximum number of custom properties; None means that only the size is limited [inferred]."""
        return None if self is AccountKind.COSMOS else PROPERTY_LIMIT

    @property
    def entity_size_limit(self) -> int:
        """Return the maximum entity size in bytes, as computed by storage.domain.entities.entity."""
        return 2 * 1024 * 1024 if self is AccountKind.COSMOS else 1024 * 1024
