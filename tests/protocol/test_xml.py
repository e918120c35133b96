"""XML as enemies write it: refused within milliseconds, and nothing kept."""

import gc
import itertools
import sys
from pathlib import Path

import pytest
from defusedxml.ElementTree import DefusedXMLParser
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.access.policies_xml import read_identifiers
from storage.domain.errors import InvalidXmlDocument, StorageError
from storage.domain.service_properties.xml import read_properties
from storage.domain.values.xml import DEPTH_LIMIT, MARKUP_LIMIT, TAG_LIMIT, read_xml
from tests.cost import costs_less_than

MIB = 1024 * 1024
ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("\ufeff<a>b</a>", "b"),
        ('<?xml version="1.0" encoding="utf-8"?><a>b</a>', "b"),
        ('\ufeff<?xml version="1.0" encoding="utf-8"?>\n<a>b</a>\n', "b"),
        ("<?xml version='1.0' encoding='UTF-16' standalone='yes'?><a>é</a>", "é"),
        ("<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>", "é"),
        ("<?pi?><!-- comment --><!----><a>b<!-- c -->d<?pi?>e</a><!-- after -->", "bde"),
        ("<a>&lt;&amp;&gt;&quot;&apos;&#65;&#x1F600;</a>", "<&>\"'A😀"),
        ("<a><![CDATA[<!DOCTYPE html><b>&amp;]]></a>", "<!DOCTYPE html><b>&amp;"),
        ("<!-- <!DOCTYPE a> --><a>b</a>", "b"),
        ("<?pi <!DOCTYPE a> ?><a>b</a>", "b"),
        ("<a>\r\n\t</a>", "\n\t"),
        ("<a/>", None),
    ],
)
def test_reads(document, text):
    assert read_xml(document.encode()).text == text


def test_names_carry_their_namespace():
    root = read_xml(b'<m:a xmlns:m="urn:m" m:b="1" c="2"><d xmlns="urn:d"/></m:a>')

    assert root.tag == "{urn:m}a"
    assert root.attrib == {"{urn:m}b": "1", "c": "2"}
    assert root[0].tag == "{urn:d}d"


def test_holds_long_text_many_elements_and_deep_ones_within_the_limits():
    assert len(read_xml(b"<a>%b</a>" % (b"x" * 3 * MIB)).text) == 3 * MIB
    assert len(read_xml(b"<a>%b</a>" % (b"<b/>" * (MARKUP_LIMIT - 2)))) == MARKUP_LIMIT - 2
    assert read_xml(b"<a>" * DEPTH_LIMIT + b"</a>" * DEPTH_LIMIT).tag == "a"
    assert len(read_xml(b"<a b='%b'/>" % (b">" * (TAG_LIMIT - 9))).get("b")) == TAG_LIMIT - 9


DOCTYPES = [
    "<!DOCTYPE a><a/>",
    "\ufeff<!DOCTYPE a><a/>",
    "\ufeff\ufeff<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
    "\x0c<!DOCTYPE a><a/>",
    "<?xml version='1.0'?>\r\n\t <!-- --> <?pi?><!DOCTYPE a []><a/>",
    "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
    f'<!DOCTYPE a [<!ENTITY e0 "lol">{ENTITIES}]><a>&e11;</a>',
    f'<!DOCTYPE a [<!ENTITY x "{"x" * 100_000}">]><a>{"&x;" * 100_000}</a>',
    "<!doctype a><a/>",
    "<a/><!DOCTYPE a>",
    "<a><!DOCTYPE a></a>",
]


@pytest.mark.parametrize("document", [pytest.param(text, id=text[:40]) for text in DOCTYPES])
def test_refuses_every_doctype(document):
    with pytest.raises(InvalidXmlDocument):
        read_xml(document.encode())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "cp037"])
@pytest.mark.parametrize("document", ["<a/>", "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>"])
def test_refuses_other_encodings(document, encoding):
    declared = f"<?xml version='1.0' encoding='{encoding}'?>{document}"
    for text in (document, declared):
        if encoding == "utf-7" and text == "<a/>":
            continue  # reads the same in ASCII
        body = text.encode(encoding).replace(b"<", b"+ADw-") if encoding == "utf-7" else text.encode(encoding)
        with pytest.raises(InvalidXmlDocument):
            read_xml(body)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\xef\xbb\xbf\xef\xbb\xbf<a/>",
        b" <?xml version='1.0'?><a/>",
        b"a",
        b"<a",
        b"</a>",
        b"<a></b>",
        b"<a/><b/>",
        b"<a b='1' b='2'/>",
        b"<m:a/>",
        b"<a>&b;</a>",
        b"<a>&#0;</a>",
        b"<a>&#xD800;</a>",
        b"<a>\0</a>",
        b"<a>\xff</a>",
        b"<a>\xc0\xbc</a>",
        b"<a>\xed\xa0\x80</a>",
        b"<!-- ",
        b"<![CDATA[<a/>]]>",
        b"<a><![CDATA[</a>",
    ],
)
def test_refuses_malformed_documents(document):
    with pytest.raises(InvalidXmlDocument):
        read_xml(document)


ATTRIBUTES = b" ".join(b"a%d=''" % number for number in range(380_000))
EXPENSIVE = {
    "attributes": b"<a %b/>" % ATTRIBUTES,
    "namespaces": b"<a %b/>" % b" ".join(b"xmlns:a%d='u'" % number for number in range(200_000)),
    "a long name": b"<%b/>" % (b"a" * 4 * MIB),
    "a tag without end": b"<a " + b"'>' " * MIB,
    "depth within the count": b"<a>" * (MARKUP_LIMIT // 2) + b"</a>" * (MARKUP_LIMIT // 2),
    "elements": b"<a>%b</a>" % (b"x<b/>" * (4 * MIB // 5)),
    "comments": b"<a>%b</a>" % (b"<!---->" * (4 * MIB // 7)),
    "an unclosed prolog": b"<?x?><!---->" * (MARKUP_LIMIT // 2) + b"<!--",
    "undefined entities": b"<a>%b</a>" % (b"&b;" * MIB),
    "unclosed quotes": b"<a>" + b"<b a='" * (MARKUP_LIMIT - 1),
    "long candidates": b"<a>" + (b"<b '" + b"x" * TAG_LIMIT) * 63,
}


@pytest.mark.parametrize("document", EXPENSIVE.values(), ids=EXPENSIVE.keys())
def test_refuses_what_would_cost_much_at_once(document):
    with costs_less_than(3), pytest.raises(InvalidXmlDocument):
        read_xml(document)


def test_the_dearest_documents_within_the_limits_are_read_at_once():
    tag = b"<b %b/>" % ATTRIBUTES[: TAG_LIMIT - 100]
    tag = tag[: tag.rindex(b" ")] + b"/>"

    for document in (b"<a>%b</a>" % (tag * 63), b"<a>%b</a>" % (b"x<b/>" * (MARKUP_LIMIT - 2))):
        with costs_less_than(3):
            read_xml(document)


@pytest.mark.slow
def test_keeps_no_names(resident_memory):
    number = itertools.count()

    def read_new_names():
        names = b"".join(b"<b%d c%d=''/>" % (next(number), next(number)) for _ in range(20_000))
        read_xml(b"<a>%b</a>" % names)

    read_new_names()
    before = resident_memory()
    for _ in range(4):
        read_new_names()

    assert resident_memory() - before < 5 * MIB  # for 160,000 names


NAMES = (
    b"SignedIdentifiers SignedIdentifier Id AccessPolicy Start StorageServiceProperties Cors Logging".split()
)
PIECES = [
    *(pattern % name for name in NAMES for pattern in (b"<%b>", b"</%b>")),
    *b"a|2020-01-01|<!--|-->|<?|?>|<![CDATA[|]]>|<!DOCTYPE a>|&a;|&#0;|\0|<|>|\xff|<a b='|'/>| ".split(b"|"),
    b"\xef\xbb\xbf",
    b"<?xml version='1.0'?>",
]


@given(st.binary() | st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_whatever_is_sent_is_read_or_refused(body):
    for read in (read_xml, read_identifiers, lambda body: read_properties(body, "2019-02-02")):
        try:
            read(body)
        except StorageError:
            pass


@pytest.fixture
def resident_memory():
    """Return a function that returns the resident memory of this process in bytes."""
    if not sys.platform.startswith("linux"):
        pytest.skip("memory is measured by /proc")

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    return resident


@pytest.mark.parametrize(
    "document", ["<a>", "<a><b></a>", "<a>&b;</a>", "<!DOCTYPE a><a/>", "<a/>b", "<a>b</a>"]
)
def test_nothing_waits_for_the_garbage_collector(document):
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        try:
            read_xml(document.encode())
        except InvalidXmlDocument:
            pass
        gc.collect()
        assert [it for it in gc.garbage if isinstance(it, DefusedXMLParser)] == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
