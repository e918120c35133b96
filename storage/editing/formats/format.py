"""Interface of text formats, which convert texts to the usual spelling of their type."""

from abc import ABC, abstractmethod

from storage.domain.values.edm import Edm


class NotInFormat(Exception):
    """The text is not in the format."""


class Format(ABC):
    """Text format of a column's values; two formats are equal if they read every text alike."""

    __slots__ = ()

    @property
    @abstractmethod
    def spelling(self) -> str:
        """Return the name of the format, which ``read_format`` parses."""

    @property
    @abstractmethod
    def types(self) -> tuple[Edm, ...]:
        """Return the possible types of its values, beginning with the one that can hold all of them."""

    @property
    @abstractmethod
    def singular(self) -> str:
        """Return a description of one text in the format, such as "a date, day first"."""

    @property
    @abstractmethod
    def plural(self) -> str:
        """Return a description of several texts in the format."""

    @abstractmethod
    def rewrite(self, text: str) -> str:
        """Convert a text to the usual spelling of its type, losslessly; raises NotInFormat."""

    def includes(self, other: "Format") -> bool:
        """Return whether this format covers another one when a user selects it."""
        return self == other
