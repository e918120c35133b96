"""Indentation of XML, and the position of its parse errors, for editors in the console."""

from xml.etree.ElementTree import ParseError, indent, tostring

from storage.domain.errors import StorageError
from storage.domain.values.xml import read_xml


def indent_xml(document: bytes) -> str:
    root = read_xml(document)
    indent(root)
    return tostring(root, encoding="unicode")


def error_position(error: StorageError | None) -> tuple[int, int] | None:
    """Return line and column, from 1, of a parse error; None for other errors."""
    if error is None or not isinstance(error.__cause__, ParseError):
        return None
    line, column = error.__cause__.position
    return line, column + 1
