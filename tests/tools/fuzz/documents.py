"""Hypothesis strategies for shared access signatures, and for documents in XML and Atom."""

from contextlib import suppress
from html import escape as escape_xml

from hypothesis import strategies as st

from tests.faults import tokens
from tests.faults.connection import Request
from tests.tools.fuzz import values
from tests.tools.fuzz.protocol import (
    ACCOUNT,
    TABLE,
    entity_paths,
    escaped,
    mutated,
    queries,
    texts,
    to,
    usual_paths,
)

# shared access signatures

TOKENS = [
    {**tokens.FULL, "tn": TABLE},
    {**tokens.FULL, "tn": TABLE, **tokens.BOUNDS},
    {**tokens.FULL, "tn": TABLE, "si": "reader"},
    tokens.ACCOUNT,
]
SAS_VALUES = [
    "", "r", "raud", "rr", "x", "2019-02-02", "2099-12-31", "1999-01-01", "2020-13-45", "2026-11-26T00:00Z",
    "2026-11-26T00:00:00.1234567Z", "0001-01-01", "9999-12-31T23:59:59Z", "0.0.0.0", "1.2.3.4-1.2.3.3",
    "::1", "300.1.1.1",
    "https", "http", "https,http", "ftp", "t", "bqtf", "sco", "A" * 43 + "=", "=", "\n", "%0a", "null",
]  # fmt: skip


@st.composite
def wild_sas(draw: st.DrawFn) -> Request:
    fields = dict(draw(st.sampled_from(TOKENS)))
    is_signed_early = draw(st.booleans())
    if is_signed_early:
        fields = tokens.signed(fields, ACCOUNT)
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from([*tokens.FIELDS, "sig", "skoid", "SP", "x"]))
        fields[name] = draw(st.one_of(st.sampled_from(SAS_VALUES), texts))
    if not is_signed_early:
        # fields that cannot be signed are sent unsigned
        with suppress(KeyError, UnicodeEncodeError):
            fields = tokens.signed(fields, ACCOUNT)
    pairs = [b"%b=%b" % (escaped(name), escaped(value)) for name, value in fields.items()]
    if draw(st.integers(0, 5)) == 0:
        pairs.append(draw(st.sampled_from(pairs)))
    if draw(st.integers(0, 3)) == 0:
        pairs.append(draw(queries))
    target = to(draw(usual_paths)) + b"?" + b"&".join(pairs)
    headers = [draw(st.sampled_from(values.ACCEPTS))]
    method = draw(st.sampled_from([b"GET"] * 6 + [b"POST", b"PUT", b"DELETE"]))
    body = None if method in (b"GET", b"DELETE") else b'{"PartitionKey":"b","RowKey":"3"}'
    if body:
        headers.append((b"Content-Type", b"application/json"))
    return Request(method, target, headers, body, signed=False)


# documents

ODD_DOCUMENTS = [
    b"", b" ", b"<", b"<a>", b"<a/>", b"</a>", b"<a><b></a></b>", b"<?xml?>", b"<?xml version='1.0'?>", b"{}",
    b"<?xml version='1.0' encoding='utf-16'?><a/>", b"<?xml version='1.0' encoding='x'?><a/>", b"\xef\xbb\xbf<a/>",
    "<?xml version='1.0' encoding='utf-16'?><a/>".encode("utf-16"), b"<a>\x00</a>", b"<a>\xff</a>", b"<a>&#0;</a>",
    b"<a>&#xD800;</a>", b"<a>&none;</a>", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",

    b"<!DOCTYPE a [<!ENTITY b '12345'><!ENTITY c '&b;&b;&b;&b;&b;&b;'><!ENTITY d '&c;&c;&c;&c;'>]><a>&d;</a>",
    b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
    b"<!DOCTYPE a SYSTEM 'http://127.0.0.1:1/'><a/>",
    b"<a>" * 5000, b"<a>" * 5000 + b"</a>" * 5000, b"<a " + b"b='c' " * 2 + b"/>", b"<a b:c='d'/>",
    b"<a><![CDATA[x]]></a>",
    b"<a>" + b"x" * 100_000 + b"</a>", b"<!-- -- --><a/>", b"<a xmlns=''/>",
]  # fmt: skip
XML_TEXTS = [
    "", "true", "false", "True", "1", "0", "-1", "365", "366", "99999999999", "1.0", "x", "*", "http://a",
    "GET", "GET,PUT",
    "x" * 70, "2026-11-26T00:00:00.0000000Z", "2026-11-26", "raud", "r", "é", " ",
]  # fmt: skip
SERVICE_ELEMENTS = [
    "StorageServiceProperties", "Logging", "HourMetrics", "MinuteMetrics", "Cors", "CorsRule", "Version",
    "Delete", "Read",
    "Write", "RetentionPolicy", "Enabled", "Days", "IncludeAPIs", "AllowedOrigins", "AllowedMethods",
    "MaxAgeInSeconds",
    "ExposedHeaders", "AllowedHeaders", "DefaultServiceVersion", "x",
]  # fmt: skip
POLICY_ELEMENTS = [
    "SignedIdentifiers",
    "SignedIdentifier",
    "Id",
    "AccessPolicy",
    "Start",
    "Expiry",
    "Permission",
    "x",
]


def _text(draw: st.DrawFn) -> str:
    return escape_xml(draw(st.one_of(st.sampled_from(XML_TEXTS), texts)))


@st.composite
def _elements(draw: st.DrawFn, names: list[str]) -> str:
    """Nested as they happen to be; what they contain, in the order of the list, makes sense now and then."""
    document, depth = "", draw(st.integers(0, 4))
    for place in range(depth):
        name = names[min(place, len(names) - 1)] if draw(st.booleans()) else draw(st.sampled_from(names))
        leaves = "".join(
            f"<{leaf}>{_text(draw)}</{leaf}>"
            for leaf in draw(st.lists(st.sampled_from(names), max_size=3))
        )  # fmt: skip
        document = f"<{name}>{leaves}{document}</{name}>"
    return f"<{names[0]}>{document}</{names[0]}>"


@st.composite
def wild_xml(draw: st.DrawFn) -> Request:
    is_acl = draw(st.booleans())
    names = POLICY_ELEMENTS if is_acl else SERVICE_ELEMENTS
    body = draw(
        st.one_of(
            _elements(names).map(lambda text: text.encode("utf-8", "replace")),
            st.sampled_from(ODD_DOCUMENTS),
        )
    )
    if draw(st.integers(0, 3)) == 0:
        body = draw(mutated(body))
    target = to(b"fuzz?comp=acl" if is_acl else b"?restype=service&comp=properties")
    method = draw(st.sampled_from([b"PUT"] * 8 + [b"GET", b"POST"]))
    return Request(method, target, [(b"Content-Type", draw(st.sampled_from(XML_TYPES)))], body)


XML_TYPES = [b"application/xml", b"application/xml", b"text/xml; charset=utf-16", b"application/json", b""]
ATOM = (
    '<entry xmlns="http://www.w3.org/2005/Atom" xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"'
    ' xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices"><content type="application/xml"><m:properties>'
    "{}</m:properties></content></entry>"
)


@st.composite
def _properties(draw: st.DrawFn) -> str:
    names = st.sampled_from(
        [name for name in values.NAMES if name.isascii() and name.isidentifier()] + ["a-b", "x:y"]
    )
    kinds = st.sampled_from(["", *[f' m:type="{it}"' for it in values.TYPES], ' m:null="true"', ' m:type="'])
    raw = st.sampled_from([it for it in values.RAW_VALUES if len(it) < 2000]).map(escape_xml)
    chosen = draw(st.lists(st.tuples(names, kinds, st.one_of(raw, texts.map(escape_xml))), max_size=3))
    keys = f"<d:PartitionKey>p</d:PartitionKey><d:RowKey>{draw(st.integers(0, 60))}</d:RowKey>"
    return keys + "".join(f"<d:{name}{kind}>{value}</d:{name}>" for name, kind, value in chosen)


@st.composite
def wild_atom(draw: st.DrawFn) -> Request:
    body = draw(
        st.one_of(
            _properties().map(lambda text: ATOM.format(text).encode("utf-8", "replace")),
            _properties().map(lambda text: ATOM.format(text).encode("utf-8", "replace")),
            st.sampled_from(ODD_DOCUMENTS),
        )
    )
    if draw(st.integers(0, 2)) == 0:
        body = draw(mutated(body))
    method = draw(st.sampled_from([b"POST", b"POST", b"PUT", b"MERGE"]))
    path = draw(st.sampled_from([b"fuzz", b"fuzz", b"Tables"])) if method == b"POST" else draw(entity_paths)
    headers = [
        (
            b"Content-Type",
            draw(st.sampled_from([b"application/atom+xml", b"application/atom+xml;type=entry", b"text/xml"])),
        ),
        draw(st.sampled_from(values.ACCEPTS)),
    ]
    if draw(st.booleans()):
        headers += [(b"x-ms-version", b"2012-02-12"), (b"DataServiceVersion", b"2.0;NetFx")]
    return Request(method, to(path), headers, body)
