"""Policies of a table as editable XML, and explanations of its errors."""

from collections.abc import Sequence

from console.access.policies.forms import describe_rule
from console.site.xml_text import indent_xml
from storage.domain.access.policies import POLICY_LIMIT, PolicyRule, SignedIdentifier, find_faults
from storage.domain.access.policies_xml import read_identifiers, write_identifiers
from storage.domain.errors import StorageError
from storage.domain.values.xml import read_xml


def write_xml(identifiers: Sequence[SignedIdentifier]) -> str:
    """Serialize policies like Get Table ACL, indented."""
    # a carriage return that is not escaped would be read as a line feed
    return indent_xml(write_identifiers(identifiers)).replace("\r", "&#13;")


def read_edited(text: str, seen: Sequence[SignedIdentifier]) -> list[SignedIdentifier]:
    """Parse edited XML; unchanged XML returns the stored policies, as XML cannot tell all of them apart."""
    unbroken = text.replace("\r\n", "\n")
    if unbroken.strip() == write_xml(seen).strip():
        return list(seen)
    return read_identifiers(unbroken.encode(errors="surrogatepass"))


def broken_rules(text: str) -> list[str]:
    """Return the rules that edited XML violates, as the service reports them with one error code."""
    document = text.encode(errors="surrogatepass")
    try:
        if len(read_xml(document)) > POLICY_LIMIT:
            return [describe_rule(PolicyRule.NUMBER)]
        faults = find_faults(read_identifiers(document))
    except StorageError:
        return []
    return list(dict.fromkeys(describe_rule(fault.rule) for fault in faults))
