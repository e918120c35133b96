"""Translated explanations why an entity cannot be saved."""

from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.entities.entity_form import FieldError
from console.site.last_changes import plain_change
from console.site.refusals import describe_refusal
from storage.domain.entities.entity import Entity, EntityKey, entity_size
from storage.domain.errors import (
    EntityTooLarge,
    InsufficientAccountPermissions,
    KeyValueTooLarge,
    OutOfRangeInput,
    PropertiesNeedValue,
    StorageError,
    TooManyProperties,
)
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import FIRST_TICKS, Edm, first_year
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import COSMOS_KEY_LIMITS, check_key
from storage.editing.document import DocumentFault, InvalidDocument
from storage.history import last_change
from storage.models import Table

_FAULTS: Final[Mapping[DocumentFault, Promise]] = {
    DocumentFault.NOT_JSON: gettext_lazy("JSON syntax error."),
    DocumentFault.NOT_OBJECT: gettext_lazy("An entity must be a single JSON object: { … }."),
    DocumentFault.TWICE: gettext_lazy("%(name)s appears twice."),
    DocumentFault.NO_TYPE: gettext_lazy("%(name)s is not a type. Use one of %(types)s."),
    DocumentFault.NO_PROPERTY: gettext_lazy("This declares the type of %(name)s, which is missing."),
    DocumentFault.NESTED: gettext_lazy("%(name)s must be a single value. Store objects and arrays as text."),
    DocumentFault.NULL: gettext_lazy("Properties cannot be null. Leave out %(name)s instead."),
    DocumentFault.VALUE: gettext_lazy("This is not a valid %(name)s value."),
    DocumentFault.DIGITS: gettext_lazy("%(name)s has more digits than its type holds."),
    DocumentFault.TOO_LARGE: gettext_lazy("%(name)s is larger than %(limit)s, the limit for a value."),
    DocumentFault.OUT_OF_RANGE: gettext_lazy("A DateTime must be between the years %(first)s and 9999."),
    DocumentFault.NAME: gettext_lazy(
        "A property name starts with a letter or underscore and contains only letters, digits and underscores."
    ),
    DocumentFault.KEY: gettext_lazy("%(name)s must be a string."),
    DocumentFault.NO_KEY: gettext_lazy("%(name)s is missing."),
}


# in Cosmos accounts only the entity limits its values
_VALUE_LIMITS: Final[Mapping[AccountKind, str]] = {AccountKind.STORAGE: "64 KiB", AccountKind.COSMOS: "2 MiB"}


def describe_invalid_document(refusal: InvalidDocument, kind: AccountKind) -> str:
    types = ", ".join(type_.value for type_ in Edm)
    facts = {"limit": _VALUE_LIMITS[kind], "first": first_year(FIRST_TICKS[kind])}
    return str(_FAULTS[refusal.fault]) % {"name": refusal.about, "types": types, **facts}


def check_key_values(kind: AccountKind, key: EntityKey) -> list[FieldError]:
    errors = []
    dialect = Dialect(kind, settings.TABLERO_KEY_LENGTH_LIMIT)
    limits = COSMOS_KEY_LIMITS if dialect.is_cosmos else {}
    for field, name, part in zip(("pk", "rk"), ("PartitionKey", "RowKey"), key, strict=True):
        try:
            check_key(name, part, dialect)
        except PropertiesNeedValue:
            errors.append(FieldError(field, name, _("In a Cosmos DB account no key may be empty.")))
        except OutOfRangeInput:
            errors.append(FieldError(field, name, _("Keys cannot contain / \\ # ? or control characters.")))
        except KeyValueTooLarge:
            text = (
                _("%(name)s can have up to %(limit)s bytes in UTF-8.")
                if name in limits
                else _("A key can have up to %(limit)s UTF-16 code units.")
            )
            limit = limits.get(name, dialect.key_limit)
            errors.append(FieldError(field, name, text % {"name": name, "limit": limit}))
    return errors


def describe_error(error: StorageError, entity: Entity) -> FieldError:
    """Describe an error of the service, in the language of the user where that is clearer."""
    match error:
        case TooManyProperties():
            count = len(entity.properties)
            text = ngettext(
                "An entity can have up to 252 properties. This one has %(count)s.",
                "An entity can have up to 252 properties. This one has %(count)s.",
                count,
            ) % {"count": count}
        case EntityTooLarge():
            size = filesizeformat(entity_size(entity))
            text = _("An entity can have up to %(limit)s MiB. This one has %(size)s.") % {
                "limit": entity.kind.entity_size_limit >> 20,
                "size": size,
            }
        case InsufficientAccountPermissions():
            text = _("This account is read-only.")
        case _:
            text = describe_refusal(error)
    return FieldError("", "", text)


def describe_deletion(table: Table, key: EntityKey) -> str:
    """Describe the deletion of an entity, with user and time if known."""
    last = last_change.of_entity(table, key, None)
    return _("This entity was deleted.") if last is None else plain_change(last)


def check_limits(kind: AccountKind, entity: Entity) -> FieldError | None:
    """Return the error if the entity exceeds the limit of properties or size."""
    entity.kind = kind
    if kind.property_limit is not None and len(entity.properties) > kind.property_limit:
        return describe_error(TooManyProperties(), entity)
    if entity_size(entity) > kind.entity_size_limit:
        return describe_error(EntityTooLarge(), entity)
    return None
