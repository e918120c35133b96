"""Rows of a comparison: differing entities with rendered properties and notes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.compare.effects import EFFECTS
from console.grid import tokens
from console.grid.differences import Difference, compare_property
from console.site.effects import Effect
from storage.compare import comparing
from storage.compare.comparing import DifferingEntity
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import Edm, EdmValue

SIGNS: Final = {
    DifferenceKind.ONLY_LEFT: ("−", "removed", _("only left")),
    DifferenceKind.ONLY_RIGHT: ("+", "added", _("only right")),
    DifferenceKind.CHANGED: ("~", "changed", _("changed")),
    DifferenceKind.TYPE_ONLY: ("~", "changed", _("type only")),
}


@dataclass(frozen=True, slots=True)
class ShownEntity:
    """Differing entity, as displayed in a row."""

    key: EntityKey
    token: str
    effect: Effect
    sign: str
    style: str
    name: str | Promise
    is_left: bool
    is_right: bool
    first: Difference | None  # the first difference, or the first property of an entity on one side only
    others: Sequence[Difference]
    count: int  # the number of all properties that differ


def show(entity: DifferingEntity) -> ShownEntity:
    all_differences = comparing.property_differences(entity)
    is_one_sided = entity.left is None or entity.right is None
    drawn = [
        compare_property(it.name, it.left, it.right)
        for it in (all_differences[:1] if is_one_sided else all_differences)
    ]
    if not is_one_sided and not all_differences:
        drawn = [compare_property("Timestamp", *_timestamps(entity))]
    sign, style, name = SIGNS[entity.kind]
    return ShownEntity(
        entity.key,
        tokens.encode_key(entity.key),
        EFFECTS[entity.kind],
        sign,
        style,
        name,
        entity.left is not None,
        entity.right is not None,
        drawn[0] if drawn else None,
        drawn[1:],
        len(all_differences),
    )


def _timestamps(entity: DifferingEntity) -> list[EdmValue | None]:
    return [
        None if image is None else EdmValue(Edm.DATETIME, image.timestamp)
        for image in (entity.left, entity.right)
    ]
