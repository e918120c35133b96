"""Type annotations: members of a JSON object, or columns of a file, that declare the type of another member.

The service writes the type of ``n`` as ``n@odata.type``, such as ``Edm.Int64``, and reads nothing else: here that
is ``annotation_name`` and ``described_name``. Programs that write files also have ``n@type`` (Azure Storage
Explorer), in any letter case, and the type without its namespace, such as ``int64``: all readers of files, of
pasted text and of documents that people edit take the roles of fields from ``find_roles``.
https://docs.oasis-open.org/odata/odata-json-format/v4.0/odata-json-format-v4.0.html, 4.5 Annotations
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from storage.domain.values.edm import Edm
from storage.domain.values.names import check_property_name

ODATA_TYPE: Final = "@odata.type"  # follows the name of a property, which contains no @
TYPE: Final = "@type"  # the same in the CSV files that are written
_TYPE_FIELD: Final = re.compile(r"(.+)@(odata\.)?type", re.IGNORECASE | re.DOTALL)
_TYPES: Final = {
    **{type_.value.lower(): type_ for type_ in Edm},
    **{type_.short_name.lower(): type_ for type_ in Edm},
}


# as the service has them


def annotation_name(name: str) -> str | None:
    """Return the name of the member that annotates a property's type; None for the name of control information.

    Raises StorageError for an invalid property name, such as any other name with an ``@``.
    """
    # the name of control information may have any length: it is not kept in the cache
    return None if _is_control(name) else _annotate(name)


@lru_cache(maxsize=8192)
def _annotate(name: str) -> str:
    check_property_name(name)
    return name + ODATA_TYPE


def described_name(name: str) -> str | None:
    """Return the property whose type this member annotates; None for other names."""
    return name.removesuffix(ODATA_TYPE) if name.endswith(ODATA_TYPE) else None


def _is_control(name: str) -> bool:
    """Return whether a name is ``odata.…`` or ``name@odata.…``."""
    return name.startswith("odata.") or "@odata." in name


# as files and people have them


@dataclass(frozen=True, slots=True)
class FieldRoles:
    """Roles of the fields of a row; unlisted fields are values."""

    types: Mapping[str, str]  # the field that declares the type, by the field of the value
    described: Mapping[str, str]  # the field of the value, by each field that declares its type
    controls: frozenset[str]  # control information, such as odata.etag

    def is_value(self, name: str) -> bool:
        return name not in self.described and name not in self.controls


def find_roles(names: Collection[str], values: Collection[str] = ()) -> FieldRoles:
    """Determine the roles of fields by name; ``values`` are values regardless of their names, which may be absent."""
    types: dict[str, str] = {}
    described: dict[str, str] = {}
    controls: set[str] = set()
    known = names if isinstance(names, Mapping | set | frozenset) else frozenset(names)
    for name in names:
        if name in values or ("@" not in name and not is_control(name)):
            continue
        match = _TYPE_FIELD.fullmatch(name)
        if match is not None and (match[1] in known or match[1] in values) and not is_control(match[1]):
            described[name] = match[1]
            # if both spellings are given, the service's one decides
            if match[2] or match[1] not in types:
                types[match[1]] = name
        elif is_control(name):
            controls.add(name)
    return FieldRoles(types, described, frozenset(controls))


def is_control(name: str) -> bool:
    """Return whether a name is OData control information, in any letter case, such as odata.etag or @odata.context."""
    return _is_control(name.lower())


def find_described(name: str) -> str | None:
    """Return the name of the field whose type this field declares; None unless it is a type annotation."""
    match = _TYPE_FIELD.fullmatch(name)
    return None if match is None or is_control(match[1]) else match[1]


def read_type_name(name: object) -> Edm | None:
    """Parse a type name in any spelling; None if it is unknown."""
    return _TYPES.get(name.strip().lower()) if isinstance(name, str) else None
