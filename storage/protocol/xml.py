"""Reads XML that nobody vouches for: no DTD and so no entities, in memory and time bounded by what was sent.

Expat rather than libxml2, because lxml keeps every name it has ever met for the life of the thread, and property names
are names of elements here: who invents new ones would fill the memory for good.
"""

import re
from typing import Final
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from storage.domain.errors import InvalidXmlDocument

DEPTH_LIMIT: Final = 256
TAG_LIMIT: Final = 64 * 1024  # bytes: 380,000 attributes would keep the parser busy for a second
MARKUP_LIMIT: Final = 100_000  # tags, comments, sections; the largest entity needs a thousand

_BOM: Final = b"\xef\xbb\xbf"
# what may go before the root element, which must follow at once: expat takes a second BOM, which could hide a DTD
_BEGINNING = re.compile(rb"(?:[ \t\r\n]++|<\?.*?\?>|<!--.*?-->)*+<[^!?]", re.DOTALL)
_LONG = re.compile(rb"<[^<]{%d}" % TAG_LIMIT)
_TAG = re.compile(rb"""<(?![!?])(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+""")


def read_xml(body: bytes) -> Element:
    """The root of a document in UTF-8, whatever its declaration says; raises InvalidXmlDocument."""
    document = body.removeprefix(_BOM)
    _check(document)
    parser = DefusedXMLParser(target=TreeBuilder(), encoding="utf-8", forbid_dtd=True)
    try:
        parser.feed(document)
        root: Element = parser.close()
    except (ParseError, DefusedXmlException):
        raise InvalidXmlDocument from None
    _check_depth(root)
    return root


def _check(document: bytes) -> None:
    """Refuses what the parser must not see."""
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
