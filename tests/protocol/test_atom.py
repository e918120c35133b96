"""Entities and tables in Atom, read and written."""

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain.entities.entity import Entity, EntityKey, StoredEntity, encode_entity_key, write_fragments
from storage.domain.errors import (
    DuplicatePropertiesSpecified,
    EntityTooLarge,
    InvalidInput,
    PropertyNameTooLong,
    PropertyValueTooLarge,
    TooManyProperties,
)
from storage.domain.values import dialects
from storage.domain.values.edm import Edm, EdmValue
from storage.protocol.accept import Format
from storage.protocol.atom import read_object, write_entity, write_page
from storage.protocol.json_format import Context, read_entity, read_new_entity
from tests.cost import costs_less_than
from tests.examples import of_usual
from tests.strategies import keys, names, properties, values

ATOM = "{http://www.w3.org/2005/Atom}"
DATA = "{http://schemas.microsoft.com/ado/2007/08/dataservices}"
METADATA = "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}"
BASE = "http://127.0.0.1:10002/account1"
TICKS = 15_041_000_330_000_000
KEY = EntityKey("p", "r")


def entry(properties="", start="", end=""):
    """Return an entry as the storage client for .NET wrote it."""
    return (
        f'{start}<?xml version="1.0" encoding="utf-8" standalone="yes"?>'
        '<entry xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" '
        'xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" '
        'xmlns="http://www.w3.org/2005/Atom"><title /><updated>2011-08-18T08:00:00Z</updated>'
        '<author><name /></author><id /><content type="application/xml">'
        f"<m:properties>{properties}</m:properties></content></entry>{end}"
    ).encode()


KEYS = "<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey>"


def read(properties):
    return read_entity(read_object(entry(properties)), KEY, dialects.STORAGE).properties


def insert(properties):
    return read_new_entity(read_object(entry(properties)), dialects.STORAGE)


# reading


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ("<d:x>text</d:x>", EdmValue(Edm.STRING, "text")),
        ("<d:x></d:x>", EdmValue(Edm.STRING, "")),
        ("<d:x>5</d:x>", EdmValue(Edm.STRING, "5")),
        ("<d:x> \t a \n </d:x>", EdmValue(Edm.STRING, " \t a \n ")),
        ('<d:x xml:space="preserve">  </d:x>', EdmValue(Edm.STRING, "  ")),
        ("<d:x>&#13;&#10;&amp;&lt;&gt;&quot;&apos;😀</d:x>", EdmValue(Edm.STRING, "\r\n&<>\"'😀")),
        ("<d:x><![CDATA[<b>&amp;</b>]]></d:x>", EdmValue(Edm.STRING, "<b>&amp;</b>")),
        ("<d:x>a<!-- b -->c<?d e?></d:x>", EdmValue(Edm.STRING, "ac")),
        ('<d:x m:null="false">a</d:x>', EdmValue(Edm.STRING, "a")),
        ('<d:x m:type="Edm.Boolean">1</d:x>', EdmValue(Edm.BOOLEAN, True)),
        ('<d:x m:type="Edm.Boolean"> 0\n</d:x>', EdmValue(Edm.BOOLEAN, False)),
        ('<d:x m:type="Edm.Boolean">False</d:x>', EdmValue(Edm.BOOLEAN, False)),
        ('<d:x m:type="Edm.Int32">-2147483648</d:x>', EdmValue(Edm.INT32, -(2**31))),
        ('<d:x m:type="Edm.Int32">\n 5 </d:x>', EdmValue(Edm.INT32, 5)),
        ('<d:x m:type="Edm.Double">10</d:x>', EdmValue(Edm.DOUBLE, 10.0)),
        ('<d:x m:type="Edm.Double">4.94065645841247E-324</d:x>', EdmValue(Edm.DOUBLE, 5e-324)),
        ('<d:x m:type="Edm.Double">-INF</d:x>', EdmValue(Edm.DOUBLE, -math.inf)),
        ('<d:x m:type="Edm.Double">-Infinity</d:x>', EdmValue(Edm.DOUBLE, -math.inf)),
        ('<d:x m:type="Edm.DateTime">1970-01-01T01:00:00+01:00</d:x>', EdmValue(Edm.DATETIME, 0)),
        ('<d:x m:type="Edm.Binary">\n AA\n EC\n</d:x>', EdmValue(Edm.BINARY, b"\0\1\2")),
        ('<d:x m:type="Edm.Binary" />', EdmValue(Edm.BINARY, b"")),
    ],
)
def test_reads_every_type(element, value):
    result = read(element)["x"]
    assert result == value
    assert type(result.value) is type(value.value)


@pytest.mark.parametrize(
    "element",
    [
        '<d:x m:null="true" />',
        '<d:x m:null="1"></d:x>',
        '<d:x m:type="Edm.Int32" m:null="true">5</d:x>',
        '<d:Timestamp m:type="Edm.DateTime">0001-01-01T00:00:00Z</d:Timestamp>',
        "<m:x>not data</m:x>",
        "<x>not data</x>",
        '<d:PartitionKey m:type="Edm.Int32">other</d:PartitionKey>',
    ],
)
def test_ignores_other_elements(element):
    assert read(element) == {}


@pytest.mark.parametrize(
    ("prefix", "namespace"),
    [("", ' xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices"'), ("data:", "")],
)
def test_prefixes_are_the_clients_choice(prefix, namespace):
    body = (
        '<a:entry xmlns:a="http://www.w3.org/2005/Atom" xmlns:meta="http://schemas.microsoft.com/ado/2007/08/'
        'dataservices/metadata" xmlns:data="http://schemas.microsoft.com/ado/2007/08/dataservices">\n'
        f'<a:content type="application/xml">\n<meta:properties>\n<{prefix}x{namespace} meta:type="Edm.Int32">5'
        f"</{prefix}x>\n</meta:properties>\n</a:content>\n</a:entry>"
    )
    assert read_object(body.encode()) == {"x": "5", "x@odata.type": "Edm.Int32"}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", InvalidInput),
        (entry(KEYS)[:-1], InvalidInput),
        (entry(KEYS) * 2, InvalidInput),
        (entry(KEYS).replace(b"entry", b"feed"), InvalidInput),
        (entry(KEYS).replace(b"2005/Atom", b"2005/atom"), InvalidInput),
        (entry("</m:properties><m:properties>"), InvalidInput),
        (entry("<d:x>\x01</d:x>"), InvalidInput),
        (entry("<d:x>\xe4</d:x>").replace("ä".encode(), b"\xe4"), InvalidInput),
        (entry('<d:x y="1" y="2"/>'), InvalidInput),
        (entry("<e:x/>"), InvalidInput),
        (entry('<d:x m:null="true"/><d:x>1</d:x>'), DuplicatePropertiesSpecified),
        (entry("<d:_x0219_>1</d:_x0219_><d:_x00000219_>1</d:_x00000219_>"), DuplicatePropertiesSpecified),
    ],
)
def test_refuses_invalid_entries(body, error):
    with pytest.raises(error):
        read_object(body)


# hostile documents

REFUSALS = (
    InvalidInput,
    DuplicatePropertiesSpecified,
    EntityTooLarge,
    PropertyNameTooLong,
    PropertyValueTooLarge,
    TooManyProperties,
)
HOSTILE = {
    "elements of another namespace": entry("<m:x/>" * 2_000),
    "the same property": entry("<d:x/>" * 690_000),
    "references": entry("<d:x>" + "&#65;" * 800_000 + "</d:x>"),
    "a long escaped name": entry("<d:" + "_x0219_" * 9_000 + "/>"),
    "escaped names": entry("".join(f"<d:_{n:03}{'_x0219_' * 254}{'a' * 30}/>" for n in range(900))),
    "UTF-16": entry("<d:x>1</d:x>").decode().encode("utf-16"),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_refuses_hostile_documents_at_once(body):
    with costs_less_than(3), pytest.raises(REFUSALS):
        write_fragments(read_entity(read_object(body[: 4 * 1024 * 1024]), KEY, dialects.STORAGE).properties)


# writing


def context(select=None, table="people"):
    return Context(Format.ATOM, BASE, "account1", table, select, None)


def stored(key=KEY, ticks=TICKS, **properties):
    return StoredEntity(encode_entity_key(key), b"%d" % ticks, write_fragments(properties).content.encode())


def written(body):
    """Return the one entry of a document, or its root."""
    root = ElementTree.fromstring(body)
    return root if root.tag == f"{ATOM}entry" else root.find(f"{ATOM}entry")


def properties_of(element):
    return element.find(f"{ATOM}content/{METADATA}properties")


@pytest.mark.parametrize(
    ("value", "element"),
    [
        (EdmValue(Edm.STRING, "a"), "<d:x>a</d:x>"),
        (EdmValue(Edm.STRING, ""), "<d:x></d:x>"),
        (EdmValue(Edm.STRING, "<&>]]>\"'é😀"), "<d:x>&lt;&amp;&gt;]]&gt;\"'é😀</d:x>"),
        (EdmValue(Edm.STRING, " a"), '<d:x xml:space="preserve"> a</d:x>'),
        (EdmValue(Edm.STRING, "a\n"), '<d:x xml:space="preserve">a\n</d:x>'),
        (EdmValue(Edm.STRING, "a\r\n\tb"), "<d:x>a&#13;\n\tb</d:x>"),
        (EdmValue(Edm.BOOLEAN, True), '<d:x m:type="Edm.Boolean">true</d:x>'),
        (EdmValue(Edm.INT32, -1), '<d:x m:type="Edm.Int32">-1</d:x>'),
        (EdmValue(Edm.INT64, 1), '<d:x m:type="Edm.Int64">1</d:x>'),
        (EdmValue(Edm.DOUBLE, 10.0), '<d:x m:type="Edm.Double">10.0</d:x>'),
        (EdmValue(Edm.DOUBLE, -0.0), '<d:x m:type="Edm.Double">-0.0</d:x>'),
        (EdmValue(Edm.DOUBLE, 1e16), '<d:x m:type="Edm.Double">1E+16</d:x>'),
        (EdmValue(Edm.DOUBLE, math.nan), '<d:x m:type="Edm.Double">NaN</d:x>'),
        (EdmValue(Edm.DOUBLE, -math.inf), '<d:x m:type="Edm.Double">-INF</d:x>'),
        (EdmValue(Edm.DATETIME, 1), '<d:x m:type="Edm.DateTime">1970-01-01T00:00:00.0000001Z</d:x>'),
        (EdmValue(Edm.BINARY, b"\0\1\2"), '<d:x m:type="Edm.Binary">AAEC</d:x>'),
    ],
)
def test_writes_every_type(value, element):
    body = write_entity(context(), stored(x=value)).decode()
    assert f"</d:Timestamp>{element}</m:properties>" in body


@pytest.mark.parametrize("character", ["\0", "\x01", "\x1f", "\ufffe", "\uffff", "\ud800"])
def test_marks_what_xml_cannot_say(character):
    row = stored(bad=EdmValue(Edm.STRING, f"a{character}b"), good=EdmValue(Edm.STRING, "\x7f\x80\u2028"))
    result = properties_of(written(write_page(context(), [row])))
    assert result.findtext(f"{DATA}bad") == "a\ufffdb"
    assert result.find(f"{DATA}bad").get("{urn:tablero}replaced") == "true"
    assert result.findtext(f"{DATA}good") == "\x7f\x80\u2028"
    assert result.find(f"{DATA}good").attrib == {}


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("ö", "ö"),
        ("名前", "名前"),
        ("µ", "_x00B5_"),
        ("ș", "_x0219_"),
        ("aº", "a_x00BA_"),
        ("a𝐀b", "a_x0001D400_b"),
        ("öș", "_x00F6__x0219_"),
        ("_x0219_", "_x0219_"),
        ("_x0041_", "_x0041_"),
    ],
)
def test_escapes_the_names_that_most_readers_refuse(name, element):
    row = stored(**{name: EdmValue(Edm.STRING, "v")})
    assert f"<d:{element}>v</d:{element}>" in write_entity(context(), row).decode()


@pytest.mark.parametrize(
    ("element", "name"),
    [
        ("_x0219_", "ș"),
        ("_x0001d400_x", "𝐀x"),
        ("_x00f6_", "ö"),
        ("_x0041_", "_x0041_"),
        ("_x0020_", "_x0020_"),
        ("_xD800_", "_xD800_"),
        ("_xFFFFFFFF_", "_xFFFFFFFF_"),
        ("_x00A0_", "_x00A0_"),
        ("_x_", "_x_"),
    ],
)
def test_reads_such_names_back_and_leaves_others_alone(element, name):
    assert list(read(f"<d:{element}>v</d:{element}>")) == [name]


@pytest.mark.parametrize("select", [("Timestamp",), ("PartitionKey",), ("x",), ("PartitionKey", "Timestamp")])
def test_system_properties_come_only_when_selected(select):
    row = stored(x=EdmValue(Edm.STRING, "1")) if "x" in select else stored()
    result = written(write_entity(context(select), row))
    assert {element.tag.removeprefix(DATA) for element in properties_of(result)} == set(select)
    assert result.get(f"{METADATA}etag")


def is_xml(text):
    return all(
        c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff" for c in text
    )


@settings(max_examples=of_usual(50))
@given(
    keys.filter(is_xml),
    keys.filter(is_xml),
    properties.filter(lambda p: all(v.type is not Edm.STRING or is_xml(v.value) for v in p.values())),
)
def test_an_entity_comes_back_as_it_went(partition_key, row_key, properties):
    entity = Entity(EntityKey(partition_key, row_key), properties)
    body = write_entity(context(), stored(entity.key, **properties))
    new_entity = read_new_entity(read_object(body), dialects.STORAGE)
    assert new_entity.key == entity.key
    assert repr(dict(new_entity.properties)) == repr(dict(properties))  # by text: NaN, -0.0


@given(st.dictionaries(names, values, max_size=8))
def test_whatever_is_stored_can_be_parsed(properties):
    page = [stored(**properties), stored(EntityKey("\uffff", "\ufffe"))]
    assert len(ElementTree.fromstring(write_page(context(), page))) == 6
