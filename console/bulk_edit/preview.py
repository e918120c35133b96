"""Preview of a bulk edit: numbers, skip reasons, losses and a sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.grid.differences import EntityDifference, compare_entities
from storage.bulk_edit.bulk_edit_previews import BulkEditPreview
from storage.domain.entities.entity import EntityKey
from storage.editing.bulk_edit import Edited, Obstacle, ObstacleKind, TypeChange
from storage.editing.conversions import Loss

KINDS: Final = (
    ("set", gettext_lazy("Set a property")),
    ("remove", gettext_lazy("Remove a property")),
    ("rename", gettext_lazy("Rename a property")),
    ("copy", gettext_lazy("Copy a property")),
    ("convert", gettext_lazy("Convert a type")),
    ("key", gettext_lazy("Change keys")),
    ("second-copy", gettext_lazy("Second copies")),
    ("delete", gettext_lazy("Delete entities")),
)
_LOSSES: Final[Mapping[str, Promise]] = {
    Loss.SPELLING: gettext_lazy(
        "Converting %(property)s would change how it is written, such as drop leading zeros."
    ),
    Loss.FRACTION: gettext_lazy("Converting %(property)s would drop the digits after the decimal point."),
    Loss.PRECISION: gettext_lazy("%(property)s would lose digits that a Double cannot hold."),
    Loss.SIGN: gettext_lazy("%(property)s would lose the sign of zero."),
}
_OBSTACLES: Final[Mapping[ObstacleKind, Promise]] = {
    ObstacleKind.CHANGED: gettext_lazy("The entity was changed since the edit began."),
    ObstacleKind.GONE: gettext_lazy("The entity was deleted during the edit."),
    ObstacleKind.KEY_EXISTS: gettext_lazy("Another entity has the new key."),
    ObstacleKind.KEY_TWICE: gettext_lazy("The second copy of another entity has the same key."),
    ObstacleKind.ORIGINAL: gettext_lazy(
        "The entity with the new key is an original: the query finds it as well. Narrow the query."
    ),
    ObstacleKind.PROPERTY_EXISTS: gettext_lazy("The entity already has a property %(property)s."),
    ObstacleKind.WRONG_TYPE: gettext_lazy("%(property)s: these types do not go together: %(detail)s."),
    ObstacleKind.OUT_OF_RANGE: gettext_lazy("%(property)s: the result is out of range: %(detail)s."),
    ObstacleKind.DIVISION_BY_ZERO: gettext_lazy("%(property)s: division by zero."),
    ObstacleKind.NOT_CONVERTIBLE: gettext_lazy("%(property)s: the value cannot be converted: %(detail)s."),
    ObstacleKind.TOO_LONG: gettext_lazy("%(property)s: the result is too long."),
    ObstacleKind.TOO_LARGE: gettext_lazy("The entity would be too large."),
    ObstacleKind.TOO_MANY_PROPERTIES: gettext_lazy("The entity would have too many properties."),
    ObstacleKind.INVALID_KEY: gettext_lazy("The new key is invalid: %(detail)s."),
}
_SHOWN: Final = 8  # properties of an entity that is deleted


def describe_operation(written: Mapping[str, Any]) -> tuple[Promise | str, str]:
    """Return the title and text of an operation in JSON."""
    op = written["op"]
    match op:
        case "set":
            text = f"{written['property']} = {written['expression']}"
        case "rename" | "copy":
            text = f"{written['property']} → {written['to']}"
        case "convert":
            text = f"{written['property']}: {written['type']}"
        case "key" | "second-copy":
            names = {"PartitionKey": written.get("partition_key"), "RowKey": written.get("row_key")}
            text = ", ".join(f"{name} = {it}" for name, it in names.items() if it is not None)
            if table := written.get("table"):
                text = f"{text} → {table}" if text else f"→ {table}"
        case _:
            text = written.get("property", "")
    return dict(KINDS).get(op, op), text


def describe_obstacle(obstacle: Obstacle) -> str:
    """Explain why an entity is skipped."""
    if obstacle.kind is ObstacleKind.LOSS:
        return describe_loss(obstacle.property, obstacle.detail)
    facts = {"property": obstacle.property or _("New key"), "detail": obstacle.detail}
    return str(_OBSTACLES[obstacle.kind]) % facts


def describe_loss(name: str, loss: str) -> str:
    return str(_LOSSES[loss]) % {"property": name}


@dataclass(frozen=True, slots=True)
class Group:
    """Group of entities with the same message, and the keys of some of them."""

    text: str
    number: int
    examples: Sequence[EntityKey] = ()
    is_loss: bool = False  # whether the entities are skipped because a value would lose something


@dataclass(frozen=True, slots=True)
class Retyping:
    """Property whose type changes; "" if it is absent."""

    name: str
    before: str
    after: str
    number: int

    @property
    def is_warned(self) -> bool:
        """Return whether code that reads the property may break."""
        return bool(self.before and self.after)


@dataclass(frozen=True, slots=True)
class Sample:
    """Entity before and after, by differing properties; ``others`` counts hidden ones."""

    difference: EntityDifference
    new_key: EntityKey | None  # if it is another one
    is_deleted: bool
    others: int = 0


@dataclass(frozen=True)
class PreviewView:
    found: BulkEditPreview

    @property
    def written(self) -> int:
        return self.found.counts.written

    @property
    def about(self) -> int | None:
        """Return the number of entities affected by a run, counted or estimated."""
        return self.written if self.found.is_complete else self.found.matches

    @property
    def numbers(self) -> list[tuple[str, int, str]]:
        """Return the numbers to show, each with label and kind."""
        counts = self.found.counts
        numbers = [
            (_("will change"), counts.changed, "changed"),
            (_("get another key"), counts.moved, "changed"),
            (_("will be copied"), counts.copied, "changed"),
            (_("will replace an older copy"), counts.replaced, "changed"),
            (_("will be deleted"), counts.deleted, "deleted"),
            (_("left over: will be deleted"), counts.left_over, "deleted"),
            (_("stay as they are"), counts.unchanged, ""),
            (_("skipped"), counts.skipped, "skipped"),
        ]
        return [it for it in numbers if it[1]] or numbers[:1]

    @cached_property
    def obstacles(self) -> list[Group]:
        counts = self.found.counts
        return [
            Group(
                describe_obstacle(it),
                number,
                [key for key, met in counts.examples if met == it],
                is_loss=it.kind is ObstacleKind.LOSS,
            )
            for it, number in counts.obstacles.most_common()
        ]

    @property
    def losses(self) -> list[Group]:
        return [Group(describe_loss(*it), number) for it, number in self.found.losses.most_common()]

    @property
    def retypings(self) -> list[Retyping]:
        return [
            _retyping(it, number) for it, number in self.found.types.most_common() if it.before != it.after
        ]

    @property
    def samples(self) -> list[Sample]:
        return [_sample(it) for it in (*self.found.samples, *self.found.left_over)]

    @property
    def is_in_step(self) -> bool:
        return self.found.is_in_step


def _retyping(change: TypeChange, number: int) -> Retyping:
    before, after = ("" if it is None else it.short_name for it in change[1:])
    return Retyping(change.property, before, after, number)


def _sample(edited: Edited) -> Sample:
    result = edited.result
    found = compare_entities(edited.old_key, edited.replaced or edited.stored, result)
    new_key = edited.key if edited.is_moved or edited.is_copy else None
    return Sample(found, new_key, result is None, max(0, len(found.differences) - _SHOWN))
