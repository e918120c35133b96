"""Check of whether an entity fits into an account of another kind, with reasons."""

from enum import StrEnum

from storage.domain.entities.entity import Entity, entity_size
from storage.domain.errors import KeyValueTooLarge, PropertiesNeedValue
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import BINARY_LIMIT, FIRST_TICK, STRING_LIMIT, Edm, EdmValue, utf16_length
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import check_entity_key


class Misfit(StrEnum):
    """Reason why entities or tables do not fit into an account, phrased for several of them."""

    EMPTY_KEY = "have an empty key"
    LONG_KEY = "have a key that is too long"
    EARLY_TIME = "have a DateTime before 1601"
    LONG_VALUE = "have a value of more than 64 KiB"
    MANY_PROPERTIES = "have too many properties"
    LARGE_ENTITY = "are too large"
    TABLE_NAME = "has a name that is not allowed"
    TABLE_CASE = "has the name of another table in other letters"
    POLICIES = "has stored access policies, which are left out"

    @property
    def code(self) -> str:
        """Return the machine-readable name, such as empty_key."""
        return self.name.lower()


def find_misfit(entity: Entity, kind: AccountKind) -> Misfit | None:
    """Return the first reason why an entity does not fit into an account of this kind, or None; sets its kind."""
    entity.kind = kind
    try:
        check_entity_key(*entity.key, Dialect(kind))
    except PropertiesNeedValue:
        return Misfit.EMPTY_KEY
    except KeyValueTooLarge:
        return Misfit.LONG_KEY
    if kind.property_limit is not None and len(entity.properties) > kind.property_limit:
        return Misfit.MANY_PROPERTIES
    if kind is AccountKind.STORAGE:
        for value in entity.properties.values():
            if (reason := misfit_of(value)) is not None:
                return reason
    return Misfit.LARGE_ENTITY if entity_size(entity) > kind.entity_size_limit else None


def misfit_of(value: EdmValue) -> Misfit | None:
    """Return the reason why a value does not fit into a storage account; None if it does."""
    match value:
        case (Edm.DATETIME, int(ticks)) if ticks < FIRST_TICK:
            return Misfit.EARLY_TIME
        case (Edm.STRING, str(text)) if utf16_length(text) > STRING_LIMIT:
            return Misfit.LONG_VALUE
        case (Edm.BINARY, bytes(data)) if len(data) > BINARY_LIMIT:
            return Misfit.LONG_VALUE
    return None
