"""The policies of a table as XML that people read and write, and what is wrong with what they wrote."""

from collections.abc import Sequence
from xml.etree.ElementTree import ParseError, indent, tostring

from console.policies.forms import rule_of
from storage.domain.access.policies import POLICY_LIMIT, PolicyRule, SignedIdentifier, find_faults
from storage.domain.access.policies_xml import read_identifiers, write_identifiers
from storage.domain.errors import StorageError
from storage.domain.values.xml import read_xml


def write(identifiers: Sequence[SignedIdentifier]) -> str:
    """What a client gets, with line breaks for people."""
    root = read_xml(write_identifiers(identifiers))
    indent(root)
    # a carriage return that is not escaped would be read as a line feed
    return tostring(root, encoding="unicode").replace("\r", "&#13;")


def read(text: str, seen: Sequence[SignedIdentifier]) -> list[SignedIdentifier]:
    """What was not touched is what it was, also where XML has one word for two things."""
    unbroken = text.replace("\r\n", "\n")
    if unbroken.strip() == write(seen).strip():
        return list(seen)
    return read_identifiers(unbroken.encode(errors="surrogatepass"))


def broken_rules(text: str) -> list[str]:
    """In words, where the service has one sentence for several."""
    document = text.encode(errors="surrogatepass")
    try:
        if len(read_xml(document)) > POLICY_LIMIT:
            return [rule_of(PolicyRule.NUMBER)]
        found = find_faults(read_identifiers(document))
    except StorageError:
        return []
    return list(dict.fromkeys(rule_of(fault.rule) for fault in found))


def position(error: StorageError | None) -> tuple[int, int] | None:
    """Line and column, from 1, where a parser got stuck."""
    if error is None or not isinstance(error.__cause__, ParseError):
        return None
    line, column = error.__cause__.position
    return line, column + 1
