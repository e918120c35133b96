"""The Atom parts of a case: entries and headers in the form of the storage clients for .NET, and parsed answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

if TYPE_CHECKING:
    from .client import Reply

MEDIA_TYPE = "application/atom+xml"
ATOM = "{http://www.w3.org/2005/Atom}"
DATA = "{http://schemas.microsoft.com/ado/2007/08/dataservices}"
METADATA = "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}"
SYSTEM = {"PartitionKey", "RowKey", "Timestamp"}


# writing a request


def write_entry(properties: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8" standalone="yes"?>\n'
        '<entry xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" '
        'xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" '
        'xmlns="http://www.w3.org/2005/Atom">\n'
        "  <title />\n  <updated>2012-05-07T08:20:53.1234567Z</updated>\n"
        "  <author>\n    <name />\n  </author>\n  <id />\n"
        f'  <content type="application/xml">\n    <m:properties>{properties}</m:properties>\n  </content>\n</entry>'
    )


def headers(version: str) -> dict[str, str]:
    return {
        "x-ms-version": version,
        "Accept": f"{MEDIA_TYPE},application/xml",
        "Accept-Charset": "UTF-8",
        "DataServiceVersion": "1.0;NetFx",
        "MaxDataServiceVersion": "2.0;NetFx",
    }


# every reply


def check_always(reply: Reply) -> None:
    assert reply.header("Content-Type") == f"{MEDIA_TYPE};charset=utf-8"
    assert (reply.header("DataServiceVersion") or "").startswith("1.0;")
    etag = reply.header("ETag")
    for entry in _entries(reply):
        tags = {etag, entry.get(f"{METADATA}etag")} - {None}
        if (moment := _properties(entry).findtext(f"{DATA}Timestamp")) is not None:
            tags.add(f"W/\"datetime'{quote(moment, safe='')}'\"")
        assert len(tags) <= 1, f"different tags: {tags}"
        assert entry.findtext(f"{ATOM}id", "").startswith("http")


# expectations of a case


def check_entry(reply: Reply, expected: dict[str, Any]) -> None:
    """Check the custom properties, exactly: a text, `[type, text]`, or false for null."""
    (entry,) = _entries(reply)
    results = {
        name: _value(element) for name, element in _named(_properties(entry)).items() if name not in SYSTEM
    }
    assert results == expected, f"properties {results}, not {expected}"


def check_feed(reply: Reply, expected: list[str]) -> None:
    """Check the RowKeys, or the names of the tables."""
    assert ElementTree.fromstring(reply.body).tag == f"{ATOM}feed", "no feed"
    results = [
        properties.findtext(f"{DATA}RowKey") or properties.findtext(f"{DATA}TableName")
        for properties in map(_properties, _entries(reply))
    ]
    assert results == expected, f"entries {results}, not {expected}"


def _entries(reply: Reply) -> Iterator[Element]:
    root = ElementTree.fromstring(reply.body)
    return root.iter(f"{ATOM}entry")


def _properties(entry: Element) -> Element:
    result = entry.find(f"{ATOM}content[@type='application/xml']/{METADATA}properties")
    assert result is not None, "an entry without properties"
    return result


def _named(properties: Element) -> dict[str, Element]:
    return {element.tag.removeprefix(DATA): element for element in properties}


def _value(element: Element) -> Any:
    if element.get(f"{METADATA}null") == "true":
        return False
    text = element.text or ""
    return [element.get(f"{METADATA}type"), text] if f"{METADATA}type" in element.attrib else text
