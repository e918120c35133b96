"""Parser of untrusted XML: no DTD, no entities, and bounded time and memory."""

import re
from collections.abc import Container
from typing import Final
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from storage.domain.errors import InvalidXmlDocument, UnsupportedXmlNode

DEPTH_LIMIT: Final = 256
TAG_LIMIT: Final = 64 * 1024  # bytes: 380,000 attributes would keep the parser busy for a second
MARKUP_LIMIT: Final = 100_000  # tags, comments, sections; the largest entity needs a thousand

# the start of every document that the service sends
START: Final = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>'

_BOM: Final = b"\xef\xbb\xbf"
# bytes that may go before the root element, which must follow at once: expat takes a second BOM, which could hide a DTD
_BEGINNING = re.compile(rb"(?:[ \t\r\n]++|<\?.*?\?>|<!--.*?-->)*+<[^!?]", re.DOTALL)
# a carriage return that is not escaped would be read as a line feed
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_LONG = re.compile(rb"<[^<]{%d}" % TAG_LIMIT)
_TAG = re.compile(rb"""<(?![!?])(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+""")


def read_xml(body: bytes) -> Element:
    """Parse a document as UTF-8, ignoring its declaration; raises InvalidXmlDocument."""
    document = body.removeprefix(_BOM)
    _check(document)
    parser = DefusedXMLParser(target=TreeBuilder(), encoding="utf-8", forbid_dtd=True)
    try:
        parser.feed(document)
        root: Element = parser.close()
    except (ParseError, DefusedXmlException) as error:  # a ParseError knows where
        # its handlers and the frames of its error refer to it, and to what was read: they would be garbage for long
        vars(parser).clear()
        raise InvalidXmlDocument from error.with_traceback(None)
    _check_depth(root)
    return root


def _check(document: bytes) -> None:
    """Refuse documents that are unsafe to parse."""
    try:
        document.decode()
    except UnicodeDecodeError:
        raise InvalidXmlDocument from None
    # UTF-16 of ASCII, which the parser would recognize, is UTF-8 full of zeros
    if b"\0" in document or document.count(b"<") > MARKUP_LIMIT:
        raise InvalidXmlDocument
    if not _BEGINNING.match(document):
        raise InvalidXmlDocument
    for candidate in _LONG.finditer(document):
        tag = _TAG.match(document, candidate.start())
        if tag is not None and len(tag[0]) > TAG_LIMIT:
            raise InvalidXmlDocument


def _check_depth(root: Element) -> None:
    level = [root]
    for _ in range(DEPTH_LIMIT):
        level = [child for element in level for child in element]
        if not level:
            return
    raise InvalidXmlDocument


# documents with a fixed set of elements


def read_children(element: Element, allowed: Container[str]) -> dict[str, Element]:
    """Return the children by name; each may occur once, with no text between them.

    Raises UnsupportedXmlNode for a name that is not allowed.
    """
    children = {child.tag: child for child in read_items(element, allowed)}
    if len(children) != len(element):
        raise InvalidXmlDocument
    return children


def read_items(element: Element, allowed: Container[str]) -> list[Element]:
    """Return the children, whose names may repeat, with no text between them."""
    if (element.text or "").strip() or any((child.tail or "").strip() for child in element):
        raise InvalidXmlDocument
    if any(child.tag not in allowed for child in element):
        raise UnsupportedXmlNode
    return list(element)


def read_text(element: Element) -> str:
    """Return the text of an element without children."""
    if len(element):
        raise UnsupportedXmlNode
    return element.text or ""


def write_text(text: str) -> str:
    return text.translate(_ESCAPES)


def write_element(name: str, content: str) -> str:
    """Build an element around a content that is XML already."""
    return f"<{name}>{content}</{name}>" if content else f"<{name} />"
