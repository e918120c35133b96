"""The interface of a format of texts, which rewrites them as their type is usually written."""

from abc import ABC, abstractmethod

from storage.domain.values.edm import Edm


class NotInFormat(Exception):
    """A text is not spelled in a format."""


class Format(ABC):
    """A way of spelling texts. Two formats are equal if they read every text in the same way."""

    __slots__ = ()

    @property
    @abstractmethod
    def spelling(self) -> str:
        """The name of the format, which ``read_format`` reads."""

    @property
    @abstractmethod
    def types(self) -> tuple[Edm, ...]:
        """The types that its values may have; first the one that holds all of them."""

    @property
    @abstractmethod
    def singular(self) -> str:
        """A description of one text in the format, such as: a date, day first."""

    @property
    @abstractmethod
    def plural(self) -> str:
        """A description of several texts in the format."""

    @abstractmethod
    def rewrite(self, text: str) -> str:
        """Return a text as its type is usually written, with every digit; raises NotInFormat."""

    def includes(self, other: "Format") -> bool:
        """Return whether texts in another format are meant where people speak of this one."""
        return self == other
