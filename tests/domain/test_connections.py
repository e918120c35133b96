"""Connection settings for each tool, with the place to paste them."""

import json

from storage.accounts.connection_strings import (
    ConnectionFormat,
    connection_string,
    read_host,
    write_connection,
)

TEXT = connection_string("acme", "https://tables.example.org/acme", "a+b/==")


def test_a_connection_string():
    assert TEXT == (
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=a+b/==;"
        "TableEndpoint=https://tables.example.org/acme"
    )


def test_every_form_holds_it():
    for form in ConnectionFormat:
        times = 2 if form is ConnectionFormat.FUNCTIONS else 1
        assert write_connection(form, TEXT).count("AccountKey=a+b/==") == times
    assert json.loads(write_connection(ConnectionFormat.APPSETTINGS, TEXT)) == {
        "ConnectionStrings": {"Tables": TEXT}
    }
    functions = json.loads(write_connection(ConnectionFormat.FUNCTIONS, TEXT))
    assert functions["Values"]["AzureWebJobsStorage"] == TEXT


def test_hosts():
    for text in ("tables", " tables:10002 ", "https://tables.example.org", "[::1]:80", "10.0.0.1"):
        assert read_host(text) == text.strip()
    for text in ("", "a b", "a;b", "x:99999", "ftp://x", "a/../b?c", "\u0131", "user@host", "//"):
        assert read_host(text) == ""
