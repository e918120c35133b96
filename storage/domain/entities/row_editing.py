"""Editor of the stored lines of an entity; untouched properties stay byte for byte."""

import json
from collections.abc import Mapping

from storage.domain.entities.annotations import ODATA_TYPE
from storage.domain.entities.entity import (
    SURELY_SMALL,
    EntityKey,
    StoredEntity,
    check_size,
    quote_name,
    read_stored,
    read_value,
)
from storage.domain.errors import TooManyProperties
from storage.domain.values.edm import Edm, EdmValue, quote
from storage.domain.values.encoding import encoders, needs_annotation, project
from storage.domain.values.kinds import AccountKind


class EditedRow:
    """Editable row that is parsed once and changed in place; ``key`` may be changed, too."""

    __slots__ = ("_annotations", "_kind", "_projected", "_values", "key", "stored")

    def __init__(self, stored: StoredEntity, kind: AccountKind) -> None:
        self.stored = stored
        self.key: EntityKey = stored.key
        self._kind = kind
        # JSON texts by the names of properties as they are written, without quotation marks
        self._values: dict[str, str] = {}
        self._annotations: dict[str, str] = {}
        # changed properties as JSON; null: removed
        self._projected: dict[str, str] = {}
        for line in stored.content.decode().split("\n")[1:]:
            _, annotation, value = line.split("\t") if line[0] == "\t" else ("", "", line)
            name, _, text = value[2:].partition('":')
            self._values[name] = text
            if annotation:
                self._annotations[name] = annotation.partition('":')[2]

    def __contains__(self, name: str) -> bool:
        return _written(name) in self._values

    def type_of(self, name: str) -> Edm | None:
        """Return the type of a property; None if it is absent."""
        written = _written(name)
        text, annotation = self._values.get(written), self._annotations.get(written)
        if text is None:
            return None
        if annotation is not None:
            return Edm(annotation[1:-1])
        if text[0] == '"':
            return Edm.STRING
        if text[0] in "tf":
            return Edm.BOOLEAN
        return Edm.INT32 if text.lstrip("-").isdecimal() else Edm.DOUBLE

    def read(self, name: str) -> EdmValue | None:
        """Return the value of a property, key or the Timestamp; None if it is absent."""
        match name:
            case "PartitionKey":
                return EdmValue(Edm.STRING, self.key.partition_key)
            case "RowKey":
                return EdmValue(Edm.STRING, self.key.row_key)
            case "Timestamp":
                return EdmValue(Edm.DATETIME, self.stored.timestamp)
        text = self._values.get(_written(name))
        if text is None:
            return None
        annotation = self._annotations.get(_written(name))
        return read_value(json.loads(text), annotation and annotation[1:-1])

    def set(self, name: str, value: EdmValue) -> None:
        """Set a property in place, or append it."""
        written = _written(name)
        self._values[written], self._projected[written] = encoders(self._kind)[value.type](value.value)
        if needs_annotation(value):
            self._annotations[written] = quote(value.type)
        else:
            self._annotations.pop(written, None)

    def remove(self, name: str) -> None:
        """Remove a property if the entity has it."""
        if self._values.pop(_written(name), None) is not None:
            self._projected[_written(name)] = "null"
            self._annotations.pop(_written(name), None)

    def copy(self, name: str, to: str) -> None:
        """Copy an existing property to another name, byte for byte."""
        source, target = _written(name), _written(to)
        self._values[target] = self._values[source]
        annotation = self._annotations.get(source)
        if annotation is not None:
            self._annotations[target] = annotation
        else:
            self._annotations.pop(target, None)
        value = self.read(name)
        assert value is not None
        self._projected[target] = project(value)

    def rename(self, name: str, to: str) -> None:
        """Rename an existing property in place, replacing one of the new name."""
        source, target = _written(name), _written(to)
        self.remove(to)
        self.copy(name, to)
        del self._values[target]
        self._values = _renamed(self._values, source, target)
        self._annotations.pop(source, None)
        self._projected[source] = "null"

    @property
    def patch(self) -> str:
        """Return the changed properties as JSON members for the row's projection."""
        return "{" + ",".join([f'"{name}":{text}' for name, text in self._projected.items()]) + "}"

    def write(self) -> str:
        """Serialize the content of the row; raises TooManyProperties or EntityTooLarge."""
        limit = self._kind.property_limit
        if limit is not None and len(self._values) > limit:
            raise TooManyProperties
        content = "".join([self._line(name, text) for name, text in self._values.items()])
        if len(content) > SURELY_SMALL:
            self._check_size(content)
        return content

    def _line(self, name: str, text: str) -> str:
        annotation = self._annotations.get(name)
        before = "" if annotation is None else f'\t,"{name}{ODATA_TYPE}":{annotation}\t'
        return f'\n{before},"{name}":{text}'

    def _check_size(self, content: str) -> None:
        entity = read_stored(self.stored._replace(content=content.encode()))
        entity.key, entity.kind = self.key, self._kind
        check_size(entity, entity.fragments)


def _written(name: str) -> str:
    return quote_name(name)[1:-1]


def _renamed(texts: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    return {new if name == old else name: text for name, text in texts.items()}
