"""Shared Key and Shared Key Lite against strings to sign that are written out."""

import base64
import hashlib
import hmac

import pytest

from storage.domain.access.signature import (
    Authorization,
    Scheme,
    SignedRequest,
    read_authorization,
    sign,
    verify,
)
from storage.domain.errors import AuthenticationFailed, InvalidAuthenticationInfo
from tests.cost import costs_less_than

KEY, OTHER_KEY = b"k" * 64, b"o" * 64
DATE = b"Wed, 30 Aug 2017 13:20:10 GMT"
NOW = 1504099210.0


def request(path=b"/acct/people", query=b"", method="GET", account="acct", **headers):
    fields = {
        b"x-ms-date": DATE,
        **{name.replace("_", "-").encode(): value for name, value in headers.items()},
    }
    return SignedRequest(method, path, query, fields, account)


def signed(text, key=KEY, scheme=Scheme.SHARED_KEY):
    """Return the Authorization header of a client that signed ``text``."""
    return Authorization(scheme, "acct", hmac.new(key, text, hashlib.sha256).digest())


def text(resource, method=b"GET", md5=b"", media_type=b"", date=DATE):
    return b"\n".join([method, md5, media_type, date, resource])


MERGE = request(
    b"/people(PartitionKey=%27a%27,RowKey='b')",
    method="MERGE",
    content_type=b"application/json; odata=nometadata",
    content_md5=b"1B2M2Y8AsgTpgAmY7PhCfg==",
)


@pytest.mark.parametrize(
    ("asked", "string_to_sign"),
    [
        (request(b"/Tables"), text(b"/acct/Tables")),
        (request(b""), text(b"/acct/")),
        (request(b"//Tables"), text(b"/acct//Tables")),
        (
            MERGE,
            text(
                MERGE.path.join((b"/acct", b"")),
                b"MERGE",
                MERGE.headers[b"content-md5"],
                MERGE.headers[b"content-type"],
            ),
        ),
        (request(b"/people", b"timeout=30&Comp=acl&x=1"), text(b"/acct/people?comp=acl")),
        (request(b"/people", b"x=%20&%43%4F%6dp=%61cl"), text(b"/acct/people?comp=%61cl")),
        (request(b"/", b"restype=service&comp=properties"), text(b"/acct/?comp=properties")),
        (request(b"/people", b"$filter=comp%20eq%201&NextRowKey=comp=1"), text(b"/acct/people")),
        (request(date=b"Thu, 31 Aug 2017 00:00:00 GMT"), text(b"/acct/acct/people")),
        (SignedRequest("GET", b"/people", b"", {b"date": DATE}, "acct"), text(b"/acct/people")),
    ],
)
def test_signs_as_the_service_does(asked, string_to_sign):
    verify(asked, signed(string_to_sign), [KEY], NOW)
    lite = b"\n".join(string_to_sign.rsplit(b"\n", 2)[1:])
    verify(asked, signed(lite, scheme=Scheme.SHARED_KEY_LITE), [OTHER_KEY, KEY], NOW)


@pytest.mark.parametrize(
    ("sent", "used_for_signing"),
    [
        (b"/people(PartitionKey=%27a%27,RowKey=%27b%27)", b"/people(PartitionKey='a',RowKey='b')"),
        (b"/people(PartitionKey='%40%2B%5B',RowKey='%7E')", b"/people(PartitionKey='@%2B%5B',RowKey='~')"),
        (b"/people(PartitionKey='%40%27',RowKey='%7E')", b"/people(PartitionKey='%40%27',RowKey='~')"),
        (b"/people(PartitionKey='%c3%b4',RowKey='')", b"/people(PartitionKey='%C3%B4',RowKey='')"),
        (b"/acct-secondary", b"/acct"),
        (b"/acct-secondary/people(RowKey=%27a%27)", b"/acct/people(RowKey='a')"),
    ],
)
def test_accepts_another_spelling_of_the_path(sent, used_for_signing):
    verify(request(sent), signed(text(b"/acct" + sent)), [KEY], NOW)
    verify(request(sent), signed(text(b"/acct" + used_for_signing)), [KEY], NOW)


@pytest.mark.parametrize(
    ("sent", "used_for_signing"),
    [
        (b"/people/x", b"/people%2Fx"),
        (b"/people%2Fx", b"/people/x"),
        (b"/people%2525", b"/people%25"),
        (b"/people%3Fcomp=acl", b"/people?comp=acl"),
        (b"/acct/people", b"/acct-secondary/people"),
        (b"/acct-secondaryx/people", b"/acctx/people"),
    ],
)
def test_refuses_the_signature_of_another_path(sent, used_for_signing):
    with pytest.raises(AuthenticationFailed):
        verify(request(sent), signed(text(b"/acct" + used_for_signing)), [KEY], NOW)


@pytest.mark.parametrize(
    "path",
    [b"/acct-secondary/acct" + b"/%7E" * 150_000, b"/acct/" + b"%7E" * 200_000, b"/acct/" + b"'" * 600_000],
)
def test_refuses_long_paths_in_no_time(path):
    with costs_less_than(2), pytest.raises(AuthenticationFailed):
        verify(request(path), signed(text(b"/acct/people")), [KEY, OTHER_KEY], NOW)


@pytest.mark.parametrize(("seconds", "word"), [(-900, "future"), (900, "old")])
def test_accepts_a_quarter_of_an_hour_and_no_more(seconds, word):
    verify(request(), signed(text(b"/acct/acct/people")), [KEY], NOW + seconds)
    with pytest.raises(AuthenticationFailed) as refusal:
        verify(request(), signed(text(b"/acct/acct/people")), [KEY], NOW + seconds * 901 / 900)
    assert word in refusal.value.details["AuthenticationErrorDetail"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {b"x-ms-date": b"", b"date": DATE},
        {b"date": b"2017-08-30T13:20:10Z"},
        {b"date": b"Wed, 30 Aug 99999999 13:20:10 GMT"},
        {b"date": b"Wed, 30 Aug 2017 13:20:10 GMT" + b" " * 100},
        {b"date": b"\xff" * 20},
    ],
)
def test_refuses_a_request_without_a_date(headers):
    asked = SignedRequest("GET", b"/people", b"", headers, "acct")
    with pytest.raises(AuthenticationFailed):
        verify(asked, signed(text(b"/acct/people", date=headers.get(b"date", b""))), [KEY], NOW)


@pytest.mark.parametrize(
    ("asked", "keys"),
    [
        (request(method="PUT"), [KEY]),
        (request(account="other"), [KEY]),
        (request(content_type=b"application/json"), [KEY]),
        (request(), [OTHER_KEY]),
        (request(), []),
    ],
)
def test_refuses_another_method_account_body_type_or_key(asked, keys):
    with pytest.raises(AuthenticationFailed):
        verify(asked, signed(text(b"/acct/acct/people")), keys, NOW)


def test_tells_the_string_to_sign_and_no_signature():
    sent = Authorization(Scheme.SHARED_KEY, "acct", b"\0" * 32)
    with pytest.raises(AuthenticationFailed) as refusal:
        verify(request(), sent, [KEY], NOW)
    detail = refusal.value.details["AuthenticationErrorDetail"]
    assert text(b"/acct/acct/people").decode() in detail
    for secret in (sent.mac, signed(text(b"/acct/acct/people")).mac, KEY):
        assert base64.b64encode(secret).decode() not in detail


@pytest.mark.parametrize("scheme", Scheme)
def test_reads_its_own_signatures(scheme):
    authorization = read_authorization(sign(request(), KEY, scheme))
    verify(request(), authorization, [OTHER_KEY, KEY], NOW)


def test_reads_the_scheme_in_any_case():
    mac = base64.b64encode(b"m" * 32)
    expected = Authorization(Scheme.SHARED_KEY_LITE, "acct", b"m" * 32)
    assert read_authorization(b" sharedkeylite  acct:" + mac + b" ") == expected


@pytest.mark.parametrize(
    "value",
    [
        b"", b"SharedKey", b"SharedKey foo", b"SharedKey acct:", b"SharedKey :bQ==",
        b"SharedKey acct:no base64!", b"SharedKey acct:bQ", b"SharedKey \xff:bQ==", b"Basic acct:bQ==",
        b"SharedKeyAcct:bQ==",
    ],
)  # fmt: skip
def test_refuses_invalid_authorization(value):
    with pytest.raises(InvalidAuthenticationInfo):
        read_authorization(value)
