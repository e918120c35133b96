"""Response serializers derived from type annotations, and their pages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from rest_framework import serializers

from storage.core import registry
from storage.core.notices import NoticeKind
from storage.core.verbs import Verb
from storage.domain.access.roles import Role
from storage.rest.fields import (
    InstantField,
    RoleField,
    StringMapField,
    StringsField,
)
from storage.rest.paging import PageSerializer

OPTIONAL: Final = {"required": False}  # a member that may be left out
FIELDS: Final[Mapping[Any, type[serializers.Field]]] = {
    Any: serializers.JSONField,
    bool: serializers.BooleanField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    str: serializers.CharField,
    datetime: InstantField,
    UUID: serializers.UUIDField,
    Role: RoleField,
    list: StringsField,
    dict: StringMapField,
}

ActivityId = Annotated[
    int | None, {"source": "activity.pk"}, "ID of the activity, null if nothing was written."
]


class TypedSerializer(serializers.Serializer[Any]):
    """Serializer of responses, declared by types: the fields of ``of`` and of the class itself."""

    of: ClassVar[type | None] = None
    names: ClassVar[Sequence[str]] = ()
    help: ClassVar[Mapping[str, str]] = {}
    more: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        hints = {**(_hints(cls.of) if cls.of else {}), **_hints(cls), **cls.more}
        declared = cls._declared_fields
        made = {name: declared.get(name) or cls._make(name, hints[name]) for name in cls.names or hints}
        cls._declared_fields = {**made, **declared}

    @classmethod
    def _make(cls, name: str, hint: Any) -> serializers.Field:
        method = f"get_{name}"
        if getattr(cls, method, None) is not getattr(serializers.Serializer, method, None):
            type_, options = _split(hint)
            return ComputedField(child=make_field(type_), **options)
        return make_field(hint, **({"help_text": cls.help[name]} if name in cls.help else {}))


def _hints(class_: type) -> dict[str, Any]:
    """Return the annotated members of a class."""
    hints = get_type_hints(class_, include_extras=True)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


class ComputedField(serializers.SerializerMethodField):
    """Field for the result of a serializer method, serialized by the field ``child``."""

    def __init__(self, *, child: serializers.Field, **options: Any) -> None:
        super().__init__(**options)
        self.child = child
        self.child.bind(field_name="", parent=self)
        self._spectacular_annotation = {"field": child}

    def to_representation(self, value: Any) -> Any:
        computed = super().to_representation(value)
        return None if computed is None else self.child.to_representation(computed)


# enumerations whose members subjects declare
_DECLARED: Final[Mapping[type, Callable[[], Iterable[str]]]] = {
    NoticeKind: registry.notice_kinds,
    Verb: registry.verbs,
}


def make_field(hint: Any, **options: Any) -> serializers.Field:
    """Create the field for a type; optional types allow null."""
    type_, noted = _split(hint)
    options = noted | options
    if get_origin(type_) in (Union, UnionType):
        options["allow_null"] = True
        type_ = next(it for it in get_args(type_) if it is not type(None))
    origin, arguments = get_origin(type_) or type_, get_args(type_)
    if origin is Literal:
        return serializers.ChoiceField(choices=list(arguments), **options)
    if isinstance(origin, type) and issubclass(origin, StrEnum):
        members = _DECLARED[origin]() if origin in _DECLARED else origin
        return serializers.ChoiceField(choices=[str(member) for member in members], **options)
    if origin in (list, tuple, Sequence):
        if _is_answer(arguments[0]):
            return serializer_of(arguments[0])(many=True, **options)
        return serializers.ListField(child=make_field(arguments[0]), **options)
    if origin in (dict, Mapping):
        children = {} if arguments[1] is Any else {"child": make_field(arguments[1])}
        return serializers.DictField(**children, **options)
    return (serializer_of(origin) if _is_answer(origin) else FIELDS[origin])(**options)


def _split(hint: Any) -> tuple[Any, dict[str, Any]]:
    """Split a type into the bare type and the field options in its annotations."""
    if get_origin(hint) is not Annotated:
        return hint, {}
    options: dict[str, Any] = {}
    for note in hint.__metadata__:
        options |= {"help_text": note} if isinstance(note, str) else note
    return hint.__origin__, options


def _is_answer(type_: Any) -> bool:
    return isinstance(type_, type) and (
        is_dataclass(type_)
        or (issubclass(type_, tuple) and hasattr(type_, "_fields"))
        or issubclass(type_, serializers.BaseSerializer)
    )


@cache
def serializer_of(answer: type) -> type[serializers.Serializer[Any]]:
    """Return the serializer for a declaration: derived from a dataclass or tuple, or the serializer itself."""
    if issubclass(answer, serializers.BaseSerializer):
        return answer
    return type(f"{answer.__name__}Serializer", (TypedSerializer,), {"of": answer})


@cache
def page_of(answer: type) -> type[PageSerializer]:
    """Return the serializer for a page of items."""
    serializer = serializer_of(answer)
    name = serializer.__name__.replace("Serializer", "ListSerializer")
    return type(name, (PageSerializer,), {"items": serializer(many=True)})
