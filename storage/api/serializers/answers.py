"""Serializers of answers: of dataclasses by their types, and of pages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Final, Union, get_args, get_origin, get_type_hints

from rest_framework import serializers

from storage.api.paging import PageSerializer
from storage.api.serializers.fields import InstantField, StringMapField, StringsField

FIELDS: Final[Mapping[Any, type[serializers.Field]]] = {
    bool: serializers.BooleanField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    str: serializers.CharField,
    datetime: InstantField,
    list: StringsField,
    dict: StringMapField,
}


class TypedSerializer(serializers.Serializer[Any]):
    """Answer the attributes ``names`` of an ``of``, a dataclass or tuple, as their types say.

    ``names``: by default all of a dataclass. A member that is declared is as declared, after the others if it is not
    among the names. ``help`` describes members.
    """

    of: ClassVar[type]
    names: ClassVar[Sequence[str]] = ()
    help: ClassVar[Mapping[str, str]] = {}

    def get_fields(self) -> dict[str, Any]:
        declared, hints = super().get_fields(), get_type_hints(self.of)
        made = {
            name: declared.get(name) or make_field(hints[name], help_text=self.help.get(name))
            for name in self.names or hints
        }
        return {**made, **declared}


def make_field(hint: Any, **options: Any) -> serializers.Field:
    """Make the field of a type; what may be None may be null."""
    if get_origin(hint) in (Union, UnionType):
        options["allow_null"] = True
        hint = next(it for it in get_args(hint) if it is not type(None))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return serializers.ChoiceField(choices=[it.value for it in hint], **options)
    return FIELDS[get_origin(hint) or hint](**options)


@cache
def page_of(serializer: type[serializers.Serializer[Any]]) -> type[PageSerializer]:
    """Return the serializer of a page of items."""
    name = serializer.__name__.replace("Serializer", "ListSerializer")
    return type(name, (PageSerializer,), {"items": serializer(many=True)})
