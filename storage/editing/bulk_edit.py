"""Bulk edit: operations applied in order to each matching entity, either all of them or none.

An entity that cannot be edited as requested is skipped with an obstacle as the reason. A lossy conversion is
an obstacle, too, unless losses are allowed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from storage.domain.entities.entity import SYSTEM_PROPERTIES, EntityKey, StoredEntity, encode_entity_key
from storage.domain.entities.fits import misfit_of
from storage.domain.entities.row_editing import EditedRow
from storage.domain.errors import EntityTooLarge, InvalidInput, StorageError, TooManyProperties
from storage.domain.refusals import Reason, Refusal
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.names import check_entity_key, check_property_name
from storage.editing.conversions import Loss
from storage.editing.expressions.evaluation import EvaluationError, Fault, Scope
from storage.editing.expressions.functions import converted
from storage.editing.expressions.parser import parse
from storage.editing.expressions.tree import Expression, compile
from storage.editing.input_context import InputContext

OPERATION_LIMIT: Final = 100  # operations of an edit


class Presence(StrEnum):
    """Condition on the presence of a property for an operation."""

    ALL = "all"
    ABSENT = "absent"
    PRESENT = "present"


class ObstacleKind(StrEnum):
    """Reason why a bulk edit skips an entity."""

    CHANGED = "changed"  # it was written since the edit began, or while it was edited
    GONE = "gone"  # it was deleted meanwhile
    KEY_EXISTS = "key-exists"
    KEY_TWICE = "key-twice"  # an earlier entity of the edit has a second copy under the same key
    ORIGINAL = "original"  # the query finds the entity that the copy would replace
    PROPERTY_EXISTS = "property-exists"
    WRONG_TYPE = "wrong-type"
    OUT_OF_RANGE = "out-of-range"
    DIVISION_BY_ZERO = "division-by-zero"
    NOT_CONVERTIBLE = "not-convertible"
    LOSS = "loss"
    TOO_LONG = "too-long"  # a value
    TOO_LARGE = "too-large"  # the entity
    TOO_MANY_PROPERTIES = "too-many-properties"
    INVALID_KEY = "invalid-key"


_OF_FAULTS: Final = {
    Fault.WRONG_TYPE: ObstacleKind.WRONG_TYPE,
    Fault.OUT_OF_RANGE: ObstacleKind.OUT_OF_RANGE,
    Fault.DIVISION_BY_ZERO: ObstacleKind.DIVISION_BY_ZERO,
    Fault.NOT_CONVERTIBLE: ObstacleKind.NOT_CONVERTIBLE,
    Fault.TOO_LONG: ObstacleKind.TOO_LONG,
}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Reason to skip an entity; equal ones are counted together."""

    kind: ObstacleKind
    property: str = ""  # the property whose operation met the obstacle; empty if it was not one operation's
    detail: str = ""


class NotEdited(Exception):
    """The entity is skipped."""

    def __init__(self, obstacle: Obstacle) -> None:
        self.obstacle = obstacle
        super().__init__(obstacle)


@dataclass(frozen=True, slots=True)
class SetProperty:
    """Operation that sets a property to the value of an expression, or leaves it unchanged without a value."""

    property: str
    expression: Expression
    presence: Presence = Presence.ALL


@dataclass(frozen=True, slots=True)
class RemoveProperty:
    property: str


@dataclass(frozen=True, slots=True)
class CopyProperty:
    """Operation that copies or renames a property."""

    property: str
    to: str
    renames: bool  # whether to remove the old name
    # whether to replace a property that has the new name already, which is an obstacle otherwise
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class ConvertProperty:
    property: str
    type: Edm


@dataclass(frozen=True, slots=True)
class ChangeKey:
    """Operation that changes keys; a key without an expression or value is kept."""

    partition_key: Expression | None
    row_key: Expression | None


@dataclass(frozen=True, slots=True)
class SecondCopy:
    """Operation that writes the entity, with the changes before it, under another key or to another table.

    The original stays as it is. A key without an expression or value is kept.
    """

    partition_key: Expression | None
    row_key: Expression | None
    table: str = ""  # the name of another table; empty for the same one
    replaces: bool = False  # whether to replace a copy that differs, which is an obstacle otherwise
    # whether to delete the entities that ``copies``, a $filter, finds and that are the copy of no entity of the query
    deletes_left_over: bool = False
    copies: str = ""


@dataclass(frozen=True, slots=True)
class DeleteEntity:
    """Operation that deletes the entity; it cannot be combined with others."""


Operation: TypeAlias = (
    SetProperty | RemoveProperty | CopyProperty | ConvertProperty | ChangeKey | SecondCopy | DeleteEntity
)


class TypeChange(NamedTuple):
    """Change of a property's type by an edit; None if the entity lacks it."""

    property: str
    before: Edm | None
    after: Edm | None


@dataclass(frozen=True, slots=True)
class Edited:
    """An entity before and after an edit."""

    stored: StoredEntity
    old_key: EntityKey
    key: EntityKey
    content: str | None  # None if it is deleted
    patch: str | None = None  # changes of its projection, as EditedRow.patch
    losses: Sequence[tuple[str, Loss]] = ()  # by property
    types: Sequence["TypeChange"] = ()  # types of the properties that the edit is about, before and after
    is_copy: bool = False  # whether it is a second copy, beside which the original stays
    replaced: StoredEntity | None = None  # the former copy under the key

    @property
    def result(self) -> StoredEntity | None:
        """Return the edited entity, with its current Timestamp; None if it is deleted."""
        if self.content is None:
            return None
        return StoredEntity(encode_entity_key(self.key), self.stored.ticks, self.content.encode())

    @property
    def is_moved(self) -> bool:
        return self.key != self.old_key and not self.is_copy

    @property
    def is_unchanged(self) -> bool:
        if self.content is None or self.is_moved or self.is_copy:
            return False
        return self.stored.content == self.content.encode()


_Apply = Callable[[EditedRow, Scope], None]


class Editor:
    """Editor of entities."""

    def __init__(
        self,
        operations: Sequence[Operation],
        context: InputContext,
        *,
        allows_loss: bool = False,
        notes_types: bool = False,
    ) -> None:
        self.context = context
        self.allows_loss = allows_loss
        self.changes_keys = any(isinstance(it, ChangeKey) for it in operations)
        self.second_copy = next((it for it in operations if isinstance(it, SecondCopy)), None)
        self.deletes = any(isinstance(it, DeleteEntity) for it in operations)
        self._properties = touched_properties(operations) if notes_types else ()
        self._operations = [] if self.deletes else [self._prepare(it) for it in operations]

    def edit(self, stored: StoredEntity) -> Edited:
        """Apply the operations to an entity; raises NotEdited."""
        if self.deletes:
            key = stored.key
            return Edited(stored, key, key, None, None)
        row = EditedRow(stored, self.context.kind)
        old_key, before = row.key, [row.type_of(name) for name in self._properties]
        scope, losses = Scope(row.read, self.context), []
        for name, apply in self._operations:
            try:
                apply(row, scope)
            except EvaluationError as error:
                raise NotEdited(Obstacle(_OF_FAULTS[error.fault], name, error.detail)) from None
            if scope.losses:
                losses += [(name, loss) for loss in dict.fromkeys(scope.losses)]
                scope.losses.clear()
        if losses and not self.allows_loss:
            name, loss = losses[0]
            raise NotEdited(Obstacle(ObstacleKind.LOSS, name, loss))
        try:
            content = row.write()
        except TooManyProperties:
            raise NotEdited(Obstacle(ObstacleKind.TOO_MANY_PROPERTIES)) from None
        except EntityTooLarge:
            raise NotEdited(Obstacle(ObstacleKind.TOO_LARGE)) from None
        after = [row.type_of(name) for name in self._properties]
        types = [TypeChange(*it) for it in zip(self._properties, before, after, strict=True) if any(it[1:])]
        is_copy = self.second_copy is not None
        return Edited(stored, old_key, row.key, content, row.patch, losses, types, is_copy=is_copy)

    def _prepare(self, operation: Operation) -> tuple[str, _Apply]:
        """Return the property that an operation affects, and the function that applies it."""
        match operation:
            case SetProperty(name, expression, presence):
                return name, self._setting(name, expression, presence)
            case RemoveProperty(name):
                return name, lambda row, _: row.remove(name)
            case CopyProperty():
                return operation.property, _copying(operation)
            case ConvertProperty(name, type_):
                return name, self._converting(name, type_)
            case ChangeKey() | SecondCopy():
                return "", self._changing_key(operation.partition_key, operation.row_key)
        raise AssertionError("a deletion has no other operation beside it")

    def _setting(self, name: str, expression: Expression, presence: Presence) -> _Apply:
        evaluate = compile(expression)

        def apply(row: EditedRow, scope: Scope) -> None:
            if presence is not Presence.ALL and (name in row) is (presence is Presence.ABSENT):
                return
            value = evaluate(scope)
            if value is not None:
                self._set(row, name, value)

        return apply

    def _set(self, row: EditedRow, name: str, value: EdmValue) -> None:
        if not self.context.is_cosmos and (misfit := misfit_of(value)) is not None:
            fault = Fault.OUT_OF_RANGE if value.type is Edm.DATETIME else Fault.TOO_LONG
            raise EvaluationError(fault, misfit)
        row.set(name, value)

    def _converting(self, name: str, type_: Edm) -> _Apply:
        def apply(row: EditedRow, scope: Scope) -> None:
            value = row.read(name)
            if value is not None and value.type is not type_:
                self._set(row, name, converted(value, type_, scope))

        return apply

    def _changing_key(self, *expressions: Expression | None) -> _Apply:
        dialect = Dialect(self.context.kind)
        evaluate = [None if it is None else compile(it) for it in expressions]

        def apply(row: EditedRow, scope: Scope) -> None:
            values = [None if it is None else it(scope) for it in evaluate]
            for value in values:
                if value is not None and value.type is not Edm.STRING:
                    raise EvaluationError(Fault.WRONG_TYPE, value.type.short_name)
            key = EntityKey(
                *(
                    old if value is None else str(value.value)
                    for old, value in zip(row.key, values, strict=True)
                )
            )
            try:
                check_entity_key(*key, dialect)
            except StorageError as error:
                raise NotEdited(Obstacle(ObstacleKind.INVALID_KEY, detail=error.code)) from None
            row.key = key

        return apply


def _copying(operation: CopyProperty) -> _Apply:
    def apply(row: EditedRow, _: Scope) -> None:
        if operation.property not in row or operation.property == operation.to:
            return
        if operation.to in row and not operation.replaces:
            raise NotEdited(Obstacle(ObstacleKind.PROPERTY_EXISTS, operation.to))
        (row.rename if operation.renames else row.copy)(operation.property, operation.to)

    return apply


def touched_properties(operations: Iterable[Operation]) -> tuple[str, ...]:
    """Return the properties that an edit may change, apart from keys."""
    names: dict[str, None] = {}
    for it in operations:
        match it:
            case SetProperty() | RemoveProperty() | ConvertProperty():
                names[it.property] = None
            case CopyProperty():
                names |= {it.property: None, it.to: None} if it.renames else {it.to: None}
    return tuple(names)


# operations as JSON


class InvalidOperation(InvalidInput):
    """An operation is invalid; ``index`` counts from zero, ``member`` is the invalid one."""

    def __init__(self, index: int, member: str, error: StorageError | Refusal | str) -> None:
        self.index = index
        self.member = member
        super().__init__(error.refusal if isinstance(error, StorageError) else error)
        self.span = error.span if isinstance(error, StorageError) else None


MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "set": ("property", "expression", "presence"),
    "remove": ("property",),
    "rename": ("property", "to", "replace"),
    "copy": ("property", "to", "replace"),
    "convert": ("property", "type"),
    "key": ("partition_key", "row_key"),
    "second-copy": ("partition_key", "row_key", "table", "replace", "delete_left_over", "copies"),
    "delete": (),
}
OPERATIONS: Final = tuple(MEMBERS)
SWITCHES: Final = ("replace", "delete_left_over")  # true or false
OPTIONAL: Final = ("presence", "partition_key", "row_key", "table", "copies", *SWITCHES)
TYPE_NAMES: Final = {it.short_name.lower(): it for it in Edm} | {it.value.lower(): it for it in Edm}


def read_operations(written: Sequence[Mapping[str, Any]], now: datetime) -> list[Operation]:
    """Parse the operations of an edit, with times relative to ``now``; raises InvalidOperation."""
    if not 0 < len(written) <= OPERATION_LIMIT:
        raise InvalidOperation(0, "", f"An edit has 1 to {OPERATION_LIMIT} operations.")
    operations = [_OperationReader(index, it, now).read() for index, it in enumerate(written)]
    for index, operation in enumerate(operations):
        if isinstance(operation, DeleteEntity) and len(operations) > 1:
            raise InvalidOperation(index, "op", Reason.EDIT_DELETES_TOO.of())
        if isinstance(operation, ChangeKey) and any(isinstance(it, ChangeKey) for it in operations[:index]):
            raise InvalidOperation(index, "op", Reason.EDIT_OF_KEYS_TWICE.of())
        if isinstance(operation, SecondCopy):
            if any(isinstance(it, ChangeKey) for it in operations):
                raise InvalidOperation(index, "op", Reason.EDIT_COPIES_AND_MOVES.of())
            if index < len(operations) - 1:
                raise InvalidOperation(index, "op", Reason.EDIT_COPY_IS_LAST.of())
    return operations


class _OperationReader:
    def __init__(self, index: int, written: Mapping[str, Any], now: datetime) -> None:
        self.index = index
        self.written = written
        self.now = now

    def read(self) -> Operation:
        op = self.written.get("op")
        members = MEMBERS.get(op) if isinstance(op, str) else None
        if members is None:
            raise self._error("op", f"An operation is one of {', '.join(OPERATIONS)}.")
        for name in self.written.keys() - {"op", *members}:
            raise self._error(name, f"The operation {op} has no {name}.")
        for name in members:
            if name not in self.written and name not in OPTIONAL:
                raise self._error(name, f"The operation {op} needs {name}.")
        match op:
            case "set":
                presence = self._choice("presence", Presence, Presence.ALL)
                return SetProperty(self._property("property"), self._expression("expression"), presence)
            case "remove":
                return RemoveProperty(self._property("property"))
            case "rename" | "copy":
                return CopyProperty(
                    self._property("property"), self._property("to"), op == "rename", self._is_set("replace")
                )
            case "convert":
                return ConvertProperty(self._property("property"), self._type())
            case "key":
                keys = self._keys()
                if keys == (None, None):
                    raise self._error("row_key", Reason.EDIT_KEY_MISSING.of())
                return ChangeKey(*keys)
            case "second-copy":
                return self._second_copy()
        return DeleteEntity()

    def _error(self, member: str, error: StorageError | Refusal | str) -> InvalidOperation:
        return InvalidOperation(self.index, member, error)

    def _text(self, member: str) -> str:
        text = self.written[member]
        if not isinstance(text, str):
            raise self._error(member, "A text is expected.")
        return text

    def _property(self, member: str) -> str:
        name = self._text(member)
        if name in SYSTEM_PROPERTIES:
            is_time = name == "Timestamp"
            raise self._error(
                member, Reason.EDIT_OF_TIMESTAMP.of() if is_time else Reason.EDIT_OF_KEY.of(property=name)
            )
        try:
            check_property_name(name)
        except StorageError as error:
            raise self._error(member, error) from None
        return name

    def _expression(self, member: str) -> Expression:
        try:
            return parse(self._text(member), self.now)
        except InvalidOperation:
            raise
        except StorageError as error:
            raise self._error(member, error) from None

    def _choice(self, member: str, choices: type[Presence], default: Presence) -> Presence:
        try:
            return choices(self.written.get(member, default))
        except ValueError:
            raise self._error(member, f"Choose one of {', '.join(choices)}.") from None

    def _is_set(self, member: str) -> bool:
        value = self.written.get(member, False)
        if not isinstance(value, bool):
            raise self._error(member, "true or false is expected.")
        return value

    def _type(self) -> Edm:
        found = TYPE_NAMES.get(self._text("type").lower())
        if found is None:
            raise self._error("type", f"A type is one of {', '.join(it.short_name for it in Edm)}.")
        return found

    def _keys(self) -> tuple[Expression | None, Expression | None]:
        return self._key("partition_key"), self._key("row_key")

    def _key(self, member: str) -> Expression | None:
        if self.written.get(member) is None:
            return None
        key = self._expression(member)
        if Edm.STRING not in key.types:
            raise self._error(member, Reason.EDIT_KEY_STRING.of())
        return key

    def _second_copy(self) -> SecondCopy:
        keys = self._keys()
        table, copies = (self._text(it) if it in self.written else "" for it in ("table", "copies"))
        if keys == (None, None) and not table:
            raise self._error("row_key", Reason.EDIT_COPY_SAME.of())
        return SecondCopy(*keys, table, self._is_set("replace"), self._is_set("delete_left_over"), copies)
