"""Why an entity cannot be saved, in the language of the user."""

from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.entities.entity_form import FieldError
from storage.domain.entities.entity import PROPERTY_LIMIT, SIZE_LIMIT, Entity, EntityKey, entity_size
from storage.domain.errors import (
    EntityTooLarge,
    InsufficientAccountPermissions,
    KeyValueTooLarge,
    OutOfRangeInput,
    StorageError,
    TooManyProperties,
)
from storage.domain.values.edm import Edm
from storage.domain.values.names import check_key
from storage.editing import document


def describe_invalid_document(refusal: document.InvalidDocument) -> str:
    name = refusal.about
    match refusal.fault:
        case document.DocumentFault.NOT_JSON:
            return _("JSON syntax error.")
        case document.DocumentFault.NOT_OBJECT:
            return _("An entity must be a single JSON object: { … }.")
        case document.DocumentFault.TWICE:
            return _("%(name)s appears twice.") % {"name": name}
        case document.DocumentFault.NO_TYPE:
            types = ", ".join(type_.value for type_ in Edm)
            return _("%(name)s is not a type. Use one of %(types)s.") % {"name": name, "types": types}
        case document.DocumentFault.NO_PROPERTY:
            return _("This declares the type of %(name)s, which is missing.") % {"name": name}
        case document.DocumentFault.NESTED:
            return _("%(name)s must be a single value. Store objects and arrays as text.") % {"name": name}
        case document.DocumentFault.NULL:
            return _("Properties cannot be null. Leave out %(name)s instead.") % {"name": name}
        case document.DocumentFault.VALUE:
            return _("This is not a valid %(name)s value.") % {"name": name}
        case document.DocumentFault.TOO_LARGE:
            return _("%(name)s is larger than 64 KiB, the limit for a value.") % {"name": name}
        case document.DocumentFault.OUT_OF_RANGE:
            return _("A DateTime must be between the years 1601 and 9999.")
        case document.DocumentFault.NAME:
            return _(
                "A property name starts with a letter or underscore and contains only letters, digits and underscores."
            )
        case document.DocumentFault.KEY:
            return _("%(name)s must be a string.") % {"name": name}
        case document.DocumentFault.NO_KEY:
            return _("%(name)s is missing.") % {"name": name}


def check_key_values(key: EntityKey) -> list[FieldError]:
    found = []
    for field, name, part in zip(("pk", "rk"), ("PartitionKey", "RowKey"), key, strict=True):
        try:
            check_key(name, part, limit=settings.TABLERO_KEY_LENGTH_LIMIT)
        except OutOfRangeInput:
            found.append(FieldError(field, name, _("Keys cannot contain / \\ # ? or control characters.")))
        except KeyValueTooLarge:
            text = _("A key can have up to %(limit)s characters.") % {
                "limit": settings.TABLERO_KEY_LENGTH_LIMIT
            }
            found.append(FieldError(field, name, text))
    return found


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
            text = _("An entity can have up to 1 MiB. This one has %(size)s.") % {"size": size}
        case InsufficientAccountPermissions():
            text = _("This account is read-only.")
        case _:
            text = error.text
    return FieldError("", "", text)


def check_limits(entity: Entity) -> FieldError | None:
    """The limit of an entity that this one exceeds, if any: its properties or its size."""
    if len(entity.properties) > PROPERTY_LIMIT:
        return describe_error(TooManyProperties(), entity)
    if entity_size(entity) > SIZE_LIMIT:
        return describe_error(EntityTooLarge(), entity)
    return None
