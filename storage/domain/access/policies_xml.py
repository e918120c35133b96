"""The stored access policies of a table in XML.

https://learn.microsoft.com/rest/api/storageservices/get-table-acl
"""

from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element

from storage.domain.access.policies import POLICY_LIMIT, AccessPolicy, SignedIdentifier, read_policy
from storage.domain.errors import InvalidXmlDocument, MissingRequiredXmlNode, UnsupportedXmlNode
from storage.domain.values.xml import START, read_children, read_items, read_text, read_xml, write_text

_ROOT: Final = "SignedIdentifiers"
_IDENTIFIER: Final = "SignedIdentifier"


def read_identifiers(body: bytes) -> list[SignedIdentifier]:
    """Read the policies of a table; an empty body means none."""
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
        raise MissingRequiredXmlNode
    policy = _read_policy(children["AccessPolicy"]) if "AccessPolicy" in children else AccessPolicy()
    # an element without children counts as absent and is not returned [wire]
    return SignedIdentifier(read_text(children["Id"]), None if policy == AccessPolicy() else policy)


def _read_policy(element: Element) -> AccessPolicy:
    children = read_children(element, ("Start", "Expiry", "Permission"))
    values = {name: read_text(child).strip() for name, child in children.items()}
    return read_policy(values.get("Start"), values.get("Expiry"), values.get("Permission"))


def write_identifiers(identifiers: Sequence[SignedIdentifier]) -> bytes:
    return START + _write(_ROOT, "".join(map(_write_identifier, identifiers))).encode()


def _write_identifier(identifier: SignedIdentifier) -> str:
    name = f"<Id>{write_text(identifier.identifier)}</Id>"
    policy = "" if identifier.policy is None else _write_policy(identifier.policy)
    return _write(_IDENTIFIER, name + policy)


def _write_policy(policy: AccessPolicy) -> str:
    values = {"Start": policy.start, "Expiry": policy.expiry, "Permission": policy.permission}
    return _write("AccessPolicy", "".join(_write(k, v) for k, v in values.items() if v is not None))


def _write(name: str, content: str) -> str:
    return f"<{name}>{content}</{name}>" if content else f"<{name} />"
