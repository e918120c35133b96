"""Serializers of answers that are made from types."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from rest_framework import serializers

from storage.rest.answers import OPTIONAL, TypedSerializer, page_of, serializer_of


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Wheel(NamedTuple):
    size: Annotated[int, "In inches."]
    colour: Colour | None = None


@dataclass(frozen=True)
class Bicycle:
    name: Annotated[str, "What its owner calls it."]
    wheels: list[Wheel]
    spare: Wheel | None
    made_at: datetime
    notes: dict[str, Any]


BICYCLE = Bicycle(
    "Ida", [Wheel(28), Wheel(28, Colour.RED)], None, datetime(2026, 5, 4, tzinfo=UTC), {"a": [1]}
)


class OwnedSerializer(TypedSerializer):
    owner: Annotated[str | None, {"source": "owner.name"}, "Null: nobody."]
    side: Literal["left", "right"]
    since: Annotated[int, OPTIONAL]
    double: Annotated[int, "Twice the number."]
    total: float = serializers.FloatField(source="number")
    wheels: list[Wheel]

    def get_double(self, instance):
        return 2 * instance.number


class SoldSerializer(OwnedSerializer):
    names = ("price", "owner", "side", "since", "double", "total", "wheels")
    price: int


def test_a_dataclass_is_answered_in_its_order_with_what_it_contains():
    answer = serializer_of(Bicycle)(BICYCLE).data
    assert list(answer) == ["name", "wheels", "spare", "made_at", "notes"]
    assert answer == {
        "name": "Ida",
        "wheels": [{"size": 28, "colour": None}, {"size": 28, "colour": "red"}],
        "spare": None,
        "made_at": "2026-05-04T00:00:00Z",
        "notes": {"a": [1]},
    }


def test_texts_describe_members_and_none_is_null():
    fields = serializer_of(Bicycle)().fields
    assert fields["name"].help_text == "What its owner calls it."
    assert fields["wheels"].child.fields["size"].help_text == "In inches."
    assert fields["spare"].allow_null
    assert not fields["name"].allow_null
    assert list(fields["wheels"].child.fields["colour"].choices) == ["red", "blue"]


def test_a_serializer_declares_members_with_sources_and_methods():
    bicycle = SimpleNamespace(owner=None, side="left", number=3, wheels=[Wheel(20)])
    answer = OwnedSerializer(bicycle).data
    assert list(answer) == ["owner", "side", "double", "total", "wheels"]  # ``since`` is left out
    assert answer["owner"] is None
    assert (answer["double"], answer["total"]) == (6, 3.0)
    assert answer["wheels"] == [{"size": 20, "colour": None}]
    fields = OwnedSerializer().fields
    assert fields["double"].read_only
    assert fields["double"].help_text == "Twice the number."
    assert list(fields["side"].choices) == ["left", "right"]


def test_names_order_what_is_inherited_and_added():
    assert list(SoldSerializer().fields) == list(SoldSerializer.names)


def test_the_serializer_of_a_class_is_one_and_a_page_has_its_name():
    assert serializer_of(Bicycle) is serializer_of(Bicycle)
    assert serializer_of(OwnedSerializer) is OwnedSerializer
    assert page_of(Bicycle).__name__ == "BicycleListSerializer"
    assert page_of(Bicycle)({"items": [BICYCLE], "next": None}).data["items"][0]["name"] == "Ida"


def test_a_type_without_a_field_is_refused_when_it_is_declared():
    with pytest.raises(KeyError):

        class LostSerializer(TypedSerializer):
            place: complex
