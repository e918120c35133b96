"""Serializers of answers: of dataclasses and models by their types, and of pages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Final, Union, get_args, get_origin, get_type_hints

from django.db import models
from rest_framework import serializers

from storage.api.paging import PageSerializer
from storage.api.serializers.fields import InstantField, StringsField

FIELDS: Final[Mapping[Any, type[serializers.Field]]] = {
    bool: serializers.BooleanField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    str: serializers.CharField,
    datetime: InstantField,
    list[str]: StringsField,
}
_COLUMNS: Final[Mapping[type, type[serializers.Field]]] = {
    models.BooleanField: serializers.BooleanField,
    models.IntegerField: serializers.IntegerField,
    models.CharField: serializers.CharField,
    models.TextField: serializers.CharField,
    models.DateTimeField: InstantField,
}


class TypedSerializer(serializers.Serializer[Any]):
    """Answer the attributes ``names`` of an ``of``, a dataclass, tuple or model, as their types say.

    ``names``: by default all of a dataclass. A member that is declared is as declared, after the others if it is not
    among the names. ``help`` describes members.
    """

    of: ClassVar[type]
    names: ClassVar[Sequence[str]] = ()
    help: ClassVar[Mapping[str, str]] = {}

    def get_fields(self) -> dict[str, Any]:
        declared = super().get_fields()
        made = {
            name: declared.get(name) or make_field(self.of, name, help_text=self.help.get(name))
            for name in self.names or get_type_hints(self.of)
        }
        return {**made, **declared}


def make_field(of: type, name: str, **options: Any) -> serializers.Field:
    """Make the field of an attribute or property."""
    if issubclass(of, models.Model):
        column = of._meta.get_field(name)
        if column.null:
            options["allow_null"] = True
        return next(made for kind, made in _COLUMNS.items() if isinstance(column, kind))(**options)
    attribute = getattr(of, name, None)
    hint = (
        get_type_hints(attribute.fget)["return"]
        if isinstance(attribute, property)
        else get_type_hints(of)[name]
    )
    if get_origin(hint) in (Union, UnionType):
        options["allow_null"] = True
        hint = next(it for it in get_args(hint) if it is not type(None))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return serializers.ChoiceField(choices=[it.value for it in hint], **options)
    return FIELDS[hint](**options)


@cache
def page_of(serializer: type[serializers.Serializer[Any]]) -> type[PageSerializer]:
    """Return the serializer of a page of items."""
    name = serializer.__name__.replace("Serializer", "ListSerializer")
    return type(name, (PageSerializer,), {"items": serializer(many=True)})
