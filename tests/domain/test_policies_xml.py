"""The policies of a table in XML: read as written, written as read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.access.policies import AccessPolicy, SignedIdentifier, check_policies
from storage.domain.access.policies_xml import read_identifiers, write_identifiers
from storage.domain.errors import InvalidXmlDocument, InvalidXmlNodeValue, UnsupportedXmlNode

BOM = b"\xef\xbb\xbf"
DECLARATION = b'<?xml version="1.0" encoding="utf-8"?>'
INSTANT = "2013-11-26T08:49:37.0000000Z"


def of_one(inner):
    return f"<SignedIdentifiers><SignedIdentifier>{inner}</SignedIdentifier></SignedIdentifiers>".encode()


def with_policy(inner):
    return of_one(f"<Id>a</Id><AccessPolicy>{inner}</AccessPolicy>")


@pytest.mark.parametrize(
    ("body", "identifier"),
    [
        (of_one("<Id>a</Id><AccessPolicy/>"), SignedIdentifier("a")),
        (of_one("<AccessPolicy></AccessPolicy><Id>a</Id>"), SignedIdentifier("a")),
        (with_policy("\n  "), SignedIdentifier("a")),
        (with_policy("<Start></Start><Expiry> \n</Expiry><Permission />"), SignedIdentifier("a")),
        (
            with_policy("<Start/><Permission>r</Permission>"),
            SignedIdentifier("a", AccessPolicy(permission="r")),
        ),
        (
            with_policy("<Permission> raud </Permission><Expiry>\n2013-11-26T10:49:37+02:00\n</Expiry>"),
            SignedIdentifier("a", AccessPolicy(None, INSTANT, "raud")),
        ),
        (of_one("<Id>&lt;&amp;&#13; é😀</Id>"), SignedIdentifier("<&\r é😀")),
        (of_one("<Id> a </Id>"), SignedIdentifier(" a ")),
        (of_one("<Id><![CDATA[<b>]]></Id>"), SignedIdentifier("<b>")),
    ],
)
def test_one(body, identifier):
    assert read_identifiers(BOM + DECLARATION + body) == [identifier]


def test_is_written_without_any_space_between():
    written = write_identifiers(
        [
            SignedIdentifier("a", AccessPolicy(INSTANT, INSTANT, "raud")),
            SignedIdentifier("<b>", AccessPolicy("", None, "r")),
            SignedIdentifier("d"),
        ]
    )

    assert written.decode("utf-8-sig") == (
        '<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>'
        f"<SignedIdentifier><Id>a</Id><AccessPolicy><Start>{INSTANT}</Start><Expiry>{INSTANT}</Expiry>"
        "<Permission>raud</Permission></AccessPolicy></SignedIdentifier>"
        "<SignedIdentifier><Id>&lt;b&gt;</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier>"
        "<SignedIdentifier><Id>d</Id></SignedIdentifier>"
        "</SignedIdentifiers>"
    )


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"<SignedIdentifiers/>text", InvalidXmlDocument),
        (of_one("<Id>a</Id>") + of_one("<Id>b</Id>"), InvalidXmlDocument),
        (b'<SignedIdentifiers xmlns="urn:x"/>', UnsupportedXmlNode),
        (b"<SignedIdentifiers><Id>a</Id></SignedIdentifiers>", UnsupportedXmlNode),
        (of_one(""), InvalidXmlDocument),
        (of_one("<Id>a</Id><AccessPolicy/><AccessPolicy/>"), InvalidXmlDocument),
        (of_one("<Id>a</Id>text"), InvalidXmlDocument),
        (of_one("<Id>a<b/></Id>"), UnsupportedXmlNode),
        (with_policy("<Start/><Start/>"), InvalidXmlDocument),
        (with_policy("<Start>yesterday</Start>"), InvalidXmlNodeValue),
        (with_policy("<Permission>rx</Permission>"), InvalidXmlNodeValue),
        (with_policy("<Permission><r/></Permission>"), UnsupportedXmlNode),
    ],
)
def test_refuses(body, error):
    with pytest.raises(error):
        read_identifiers(body)


LETTERS = st.permutations("raud").flatmap(
    lambda letters: st.integers(1, 4).map(lambda n: "".join(letters[:n]))
)
INSTANTS = st.datetimes().map(lambda moment: f"{moment.isoformat(timespec='microseconds')}0Z")
VALUES = st.none() | INSTANTS
POLICIES = st.none() | st.builds(AccessPolicy, VALUES, VALUES, st.none() | LETTERS).filter(
    lambda policy: policy != AccessPolicy()
)
# characters that XML can hold, within the length
CHARACTERS = st.characters(min_codepoint=32, exclude_categories=("Cs",), exclude_characters="\ufffe\uffff")
NAMES = st.text(CHARACTERS | st.sampled_from("\t\n\r"), min_size=1, max_size=32)
SETS = st.lists(
    st.builds(SignedIdentifier, NAMES, POLICIES), max_size=5, unique_by=lambda item: item.identifier
)


@given(SETS)
def test_policies_round_trip_byte_for_byte(identifiers):
    check_policies(identifiers)
    written = write_identifiers(identifiers)

    assert read_identifiers(written) == identifiers
    assert write_identifiers(read_identifiers(written)) == written
