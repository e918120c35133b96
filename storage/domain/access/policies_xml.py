"""The stored access policies of a table in XML.

https://learn.microsoft.com/rest/api/storageservices/get-table-acl
"""

from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element

from storage.domain.access.policies import POLICY_LIMIT, AccessPolicy, SignedIdentifier, read_policy
from storage.domain.errors import InvalidXmlDocument, UnsupportedXmlNode
from storage.domain.values.xml import (
    START,
    read_children,
    read_items,
    read_text,
    read_xml,
    write_element,
    write_text,
)

_ROOT: Final = "SignedIdentifiers"
_IDENTIFIER: Final = "SignedIdentifier"


def read_identifiers(body: bytes) -> list[SignedIdentifier]:
    """Parse the policies of a table from XML; an empty body means none."""
    if not body:
        return []
    root = read_xml(body)
    if root.tag != _ROOT:
        raise UnsupportedXmlNode
    items = read_items(root, (_IDENTIFIER,))
    if len(items) > POLICY_LIMIT:
        raise InvalidXmlDocument
    return [_read_identifier(item) for item in items]


def _read_identifier(element: Element) -> SignedIdentifier:
    children = read_children(element, ("Id", "AccessPolicy"))
    if "Id" not in children:
        raise InvalidXmlDocument  # as the test suite of aztables has it of the service
    policy = _read_policy(children["AccessPolicy"]) if "AccessPolicy" in children else AccessPolicy()
    # an element without content counts as absent and is not returned [wire]
    return SignedIdentifier(read_text(children["Id"]), None if policy == AccessPolicy() else policy)


def _read_policy(element: Element) -> AccessPolicy:
    children = read_children(element, ("Start", "Expiry", "Permission"))
    values = {name: read_text(child).strip() for name, child in children.items()}
    return read_policy(values.get("Start"), values.get("Expiry"), values.get("Permission"))


def write_identifiers(identifiers: Sequence[SignedIdentifier]) -> bytes:
    return START + write_element(_ROOT, "".join(map(_write_identifier, identifiers))).encode()


def _write_identifier(identifier: SignedIdentifier) -> str:
    content = f"<Id>{write_text(identifier.identifier)}</Id>"
    if (policy := identifier.policy) is not None:
        values = {"Start": policy.start, "Expiry": policy.expiry, "Permission": policy.permission}
        # not an empty element, which servers before 2.0 stored and azure-storage for Java cannot read
        terms = "".join(write_element(name, value) for name, value in values.items() if value)
        content += write_element("AccessPolicy", terms)
    return write_element(_IDENTIFIER, content)
