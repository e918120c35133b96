"""Endpoints of other services: pasted text becomes addresses and headers, and nothing else."""

import io
import logging

import pytest

from storage.domain.refusals import Reason
from storage.remote.addresses import allow_all
from storage.remote.client import RemoteUnavailable, TableClient
from storage.remote.endpoints import Endpoint, EndpointMalformed, read_endpoint

KEY = "c2VjcmV0IGtleSBvZiB0aGUgb3RoZXI="


@pytest.mark.parametrize(
    "text",
    [
        f"AccountName=acme;AccountKey={KEY}",
        f"AccountName=acme-secondary;AccountKey={KEY};EndpointSuffix=core.windows.net",
        f"AccountName=my_account.1;AccountKey={KEY};TableEndpoint=http://127.0.0.1:10002/my_account.1",
        "https://acme.table.core.windows.net/?sv=1&sig=x",
        "http://127.0.0.1:10002/devstoreaccount1?sv=1&sig=x",
        "UseDevelopmentStorage=true",
    ],
)
def test_accounts_as_services_name_them(text):
    assert read_endpoint(text).account


@pytest.mark.parametrize(
    "name",
    [
        "a\r\nX-Evil: 1",
        "a\nb",
        "a\tb",
        "a b",
        "a\0b",
        "a:b",
        "ä",
        "a/b",
        "-a",
        "a" * 256,
        "a\x7f",
        "a\u2028b",
    ],
)
def test_an_account_that_no_header_can_have_is_refused(name):
    text = f"AccountName={name};AccountKey={KEY};TableEndpoint=https://tables.example"
    with pytest.raises(EndpointMalformed) as refused:
        read_endpoint(text)
    assert refused.value.refusal.reason in (Reason.REMOTE_ACCOUNT, Reason.REMOTE_URL)
    assert KEY not in str(refused.value)
    with pytest.raises(EndpointMalformed):
        read_endpoint(f"AccountName={name};AccountKey={KEY}")


@pytest.mark.parametrize("name", ["a%0D%0AX-Evil:%201", "a%00", "a%20b", "%C3%A4"])
def test_an_account_in_an_address_is_read_as_it_is_sent(name):
    with pytest.raises(EndpointMalformed, match="only letters, digits"):
        read_endpoint(f"https://tables.example/{name}?sv=1&sig=secret")


@pytest.mark.parametrize(
    "endpoint",
    [
        Endpoint("http://127.0.0.1:1", "a\r\nX-Evil: 1", key=b"key"),
        Endpoint("http://127.0.0.1:1", "acme", sas="sig=the signature"),
        Endpoint("http://127.0.0.1:1", "acme", bearer="the\nsignature"),
    ],
)
def test_unsendable_credentials_are_not_quoted(endpoint):
    """Should something else get as far, no signature is in what is told or logged."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with pytest.raises(RemoteUnavailable) as refused:
            list(TableClient(endpoint, allow_all, lambda seconds: None).tables())
    finally:
        logging.getLogger().removeHandler(handler)
    result = f"{refused.value} {refused.value.__cause__} {log.getvalue()}"
    assert "signature" not in result and "SharedKey" not in result
