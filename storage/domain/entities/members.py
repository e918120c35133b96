"""Properties of an entity as JSON members, as the Table service sends and receives them."""

from collections.abc import Mapping
from typing import Any

from storage.domain.entities import plans
from storage.domain.entities.annotations import annotation_name
from storage.domain.entities.entity import SYSTEM_PROPERTIES
from storage.domain.errors import PartKind, StorageError, TooManyProperties
from storage.domain.values import edm
from storage.domain.values.edm import EdmValue
from storage.domain.values.kinds import AccountKind


def read_properties(members: Mapping[str, Any], kind: AccountKind) -> Mapping[str, EdmValue]:
    """Parse the properties in an entity's JSON object, ignoring control information."""
    if kind is AccountKind.COSMOS:
        members = _with_first_etag(members)
    encoded = plans.encode(members, kind)
    return encoded if encoded is not None else read_values(members, kind)


def _with_first_etag(members: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep only the first property called ``etag`` in any letter case, as Cosmos does [wire]."""
    repeated = [name for name in members if name.lower() == "etag"][1:]
    return {name: value for name, value in members.items() if name not in repeated} if repeated else members


def read_values(members: Mapping[str, Any], kind: AccountKind = AccountKind.STORAGE) -> dict[str, EdmValue]:
    """Parse properties one by one, so that an error names the property at fault; raises TooManyProperties."""
    most = kind.property_limit or len(members)
    properties: dict[str, EdmValue] = {}
    for name, value in members.items():
        # null is as good as absent
        if value is None or name in SYSTEM_PROPERTIES:
            continue
        try:
            type_name = annotation_name(name)
            if type_name is not None:
                properties[name] = edm.read(value, members.get(type_name), kind)
        except StorageError as error:
            error.within(PartKind.PROPERTY, name)
            raise
        if len(properties) > most:  # not at the end: a body can have 350,000
            raise TooManyProperties
    return properties
