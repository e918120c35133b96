"""What to paste where."""

import json

import pytest

from storage.domain.service.connections import (
    ConnectionFormat,
    connection_string,
    read_host,
    write_connection,
)

TEXT = connection_string("acme", "https://tables.example.org/acme", "a+b/==")


def test_a_connection_string():
    assert TEXT == (
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=a+b/==;"
        "TableEndpoint=https://tables.example.org/acme;"
    )


@pytest.mark.parametrize("form", ConnectionFormat)
def test_every_form_holds_it_once(form):
    assert write_connection(form, TEXT).count("AccountKey=a+b/==") == (
        2 if form is ConnectionFormat.FUNCTIONS else 1
    )


def test_files_are_json():
    assert json.loads(write_connection(ConnectionFormat.APPSETTINGS, TEXT)) == {
        "ConnectionStrings": {"Tables": TEXT}
    }
    assert (
        json.loads(write_connection(ConnectionFormat.FUNCTIONS, TEXT))["Values"]["AzureWebJobsStorage"]
        == TEXT
    )


@pytest.mark.parametrize(
    "text", ["tables", " tables:10002 ", "https://tables.example.org", "[::1]:80", "10.0.0.1"]
)
def test_hosts(text):
    assert read_host(text) == text.strip()


@pytest.mark.parametrize(
    "text", ["", "a b", "a;b", "x:99999", "ftp://x", "a/../b?c", "\u0131", "user@host", "//"]
)
def test_what_is_no_host(text):
    assert read_host(text) == ""
