"""Interface between manifests and sets of rules for rehearsals, a subject that may be left out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from storage.domain.access.actor import Actor

Fields = Mapping[str, Any]  # description, rules


class RehearsalSets(ABC):
    """Sets of rules of an account's own, by their names."""

    @abstractmethod
    def read_rules(self, written: object) -> list[dict[str, Any]]:
        """Return rules in the form in which they are stored; raises Refused."""

    @abstractmethod
    def stored(self, account: Any) -> Mapping[str, Fields]:
        """Return the sets of an account."""

    @abstractmethod
    def check_name(self, name: str) -> None:
        """Raise Refused for a name that a set cannot have."""

    @abstractmethod
    def save(self, account: Any, name: str, fields: Fields, *, by: Actor) -> None:
        """Add or replace a set; raises Refused."""

    @abstractmethod
    def delete(self, account: Any, name: str, *, by: Actor) -> None:
        """Delete a set; raises Refused."""
