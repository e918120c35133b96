"""What the request log is told of a request."""

import pytest

from storage.domain.requests.observed import ObservedRequest
from storage.protocol.http_request import RequestHead
from storage.protocol.request_log import log_entry


def logged(query=b"", path=b"/people/Staff", headers=(), answered=()):
    fields = [(b"host", b"example.org:10002"), *headers]
    head = RequestHead("GET", path, query, fields, dict(fields), "http", "", 0)
    observed = ObservedRequest(0.0, account="people", ingress=7, request_id="id")
    return log_entry(head, observed, "2019-02-02", list(answered))


def test_tells_address_and_headers():
    found = logged(
        b"$top=1",
        headers=[(b"if-match", b"*"), (b"referer", b"http://x/"), (b"x-ms-client-request-id", b"mine")],
        answered=[(b"ETag", b'W/"y"')],
    )

    assert found.url == "http://example.org:10002/people/Staff?$top=1"
    assert found.key == "/people/Staff"
    assert (found.etag, found.conditions, found.referrer) == ('W/"y"', "If-Match=*", "http://x/")
    assert (found.client_request_id, found.content_length) == ("mine", 7)
    assert found.response_header_size == 13


def test_the_key_begins_with_the_account_when_the_host_names_that():
    assert logged(path=b"/Staff(PartitionKey='%C3%A4',RowKey='r')").key == (
        "/people/Staff(PartitionKey='ä',RowKey='r')"
    )


@pytest.mark.parametrize(
    "query",
    [
        b"sv=2019-02-02&sig=SECRET",
        b"sig=SECRET&sv=2019-02-02",
        b"sv=1&SIG=SECRET&sp=r",
        b"%73ig=SECRET",
        b"s%49G=SECRET",
        b"s%69%67=SECRET&sig=SECRET",
        b"a=b;sig=SECRET",
    ],
)
def test_tells_no_signature(query):
    found = logged(query, headers=[(b"referer", b"http://x/?" + query)])

    assert "SECRET" not in found.url + found.referrer
    assert "XXXXX" in found.url


@pytest.mark.parametrize(
    "path",
    [
        b"/people/Staff%3Fsv=1%26sig=SECRET",
        b"/people/Staff%3Fsv%3D1%26sig%3DSECRET%26sp%3Dr",
        b"/people/Staff%253Fsv%253D1%2526sig%253DSECRET",
        b"/people/Staff?sig=SECRET",
    ],
)
def test_tells_no_signature_that_got_into_the_path(path):
    found = logged(path=path)

    assert "SECRET" not in found.url + found.key
    assert "XXXXX" in found.url and "XXXXX" in found.key


def test_tells_nothing_of_what_is_no_address_option_or_header():
    names = (b"referer", b"x-ms-client-request-id", b"content-md5", b"if-match", b"if-modified-since")
    found = logged(
        b"$filter=Name%20eq%20Ada&$top=5&odd=Ada&comp=Ada&NextRowKey=Ada&se=2026-01-01&sp=Ada",
        b"/people/Staff('Ada')",
        [(name, b"sig=Ada") for name in names],
    )
    assert found.url == (
        "http://example.org:10002/people/…(…)?$filter=Name eq …&$top=5&comp=…&NextRowKey=…&se=2026-01-01&sp=…&…"
    )
    assert found.key == "/people/…(…)"
    assert (found.referrer, found.client_request_id, found.content_md5) == ("…", "…", "…")
    assert found.conditions == "If-Match=…;If-Modified-Since=…"


def test_tells_only_the_beginning_of_what_is_long():
    long = b"x" * 60_000
    found = logged(
        b"$filter=" + long,
        b"/people/Staff(PartitionKey='" + long + b"',RowKey='')",
        [(name, long) for name in (b"referer", b"x-ms-client-request-id", b"content-md5", b"if-match")],
    )

    assert len(found.url) == len(found.key) == 4096
    texts = (found.referrer, found.client_request_id, found.content_md5, found.conditions)
    assert all(len(text) < 1100 for text in texts)
