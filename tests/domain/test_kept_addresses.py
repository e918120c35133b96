"""Addresses as they are stored: the resource, or the rule that the address breaks."""

import pytest

from storage.domain.errors import StorageError
from storage.domain.requests.cleaning import clean_table
from storage.domain.requests.kept_addresses import AddressFault, AddressRule, keep_address
from storage.domain.requests.routes import resolve_address, resolve_target
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from tests.faults.marked import MALFORMED_KEYS

KEY = "(PartitionKey='…',RowKey='…')"


def keep(path, *, method="GET", kind=AccountKind.STORAGE, host=b"h"):
    """Path as sent, below an account of the name acme where the host does not name it."""
    return keep_address(resolve_address(path, host, "http", ("table.h",)), method, kind)


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("", "/acme/"),
        ("/", "/acme/"),
        ("/people", "/acme/people"),
        ("/people()", "/acme/people()"),
        ("/people%28%29", "/acme/people()"),
        ("/people(PartitionKey='Ada%27%27s',RowKey='r(1)')", f"/acme/people{KEY}"),
        ("/people(RowKey=%27%27,PartitionKey=%27Ada%27)", f"/acme/people{KEY}"),
        ("/Tables", "/acme/Tables"),
        ("/tables()", "/acme/Tables()"),
        ("/Tables('people')", "/acme/Tables('people')"),
        ("/$batch", "/acme/$batch"),
        ("/$metadata", "/acme/$metadata"),
        ("/people/Tables", "/acme/people/Tables"),
        ("/people/Tables('x')", "/acme/people/Tables(…)"),
    ],
)
def test_resources_are_kept_without_keys(path, kept):
    result = keep(f"/acme{path}".encode())
    assert (result.text(), result.fault) == (kept, None)


def test_the_account_is_in_the_address_where_the_client_has_put_it():
    assert keep(b"/people()", host=b"acme.table.h").text() == "/people()"
    assert keep(b"/acme-secondary/people()").text() == "/acme-secondary/people()"
    assert keep(b"/no%20account/people").text() == "/…/people"


@pytest.mark.parametrize(
    ("path", "kept", "rule", "segments"),
    [
        ("people('Ada')", "people(…)", AddressRule.KEY, 1),
        ('people(PartitionKey="Ada",RowKey="1")', "people(…)", AddressRule.KEY, 1),
        ("people(PartitionKey='a/b',RowKey='c')", "people(…)/…", AddressRule.KEY, 2),
        ("Tables(Ada)", "Tables(…)", AddressRule.KEY, 1),
        ("people/Ada/1", "people/…/…", AddressRule.DEPTH, 3),
        ("people()/Ada", "people(…)/…", AddressRule.DEPTH, 2),
        ("people(PartitionKey='%C3',RowKey='')", "people(…)", AddressRule.ENCODING, 1),
        ("peoplesig=Ada", "…", AddressRule.TABLE_NAME, 1),
        ("Ada-1()", "…()", AddressRule.TABLE_NAME, 1),
        ("Tables('Ada-1')", "Tables('…')", AddressRule.TABLE_NAME, 1),
        ("x" * 70, "…", AddressRule.TABLE_NAME, 1),
        ("/".join("1bcdefghijk"), "…/…/…/…/…", AddressRule.DEPTH, 11),
    ],
)
def test_an_address_without_a_resource_is_described(path, kept, rule, segments):
    result = keep(f"/acme/{path}".encode())
    assert result.fault == AddressFault(rule, segments, len(path))
    assert result.text(is_known=True) == f"/acme/{kept}"
    assert result.text().replace("people", "…") == result.text()  # unless there is such a table


@pytest.mark.parametrize("form", MALFORMED_KEYS)
@pytest.mark.parametrize("kind", list(AccountKind))
def test_whatever_is_refused_breaks_a_rule(form, kind):
    path = form.format(k="Ada-secret", r="Bob-secret").encode()
    result = keep(b"/acme/" + path, kind=kind)
    assert "secret" not in result.text() or clean_table(result.name, kind)
    try:
        target = resolve_target(path, "GET", "acme", kind)
        fold_table_name(target.table or "people", kind)
    except StorageError:
        assert result.fault is not None
        assert not (result.name and result.is_known)
    else:
        assert result.fault is None


def test_a_cosmos_name_is_kept_if_its_table_exists():
    result = keep(b'/acme/people("Ada")', kind=AccountKind.COSMOS)
    assert (result.text(), result.text(is_known=True)) == ("/acme/…", '/acme/people("Ada")')
    assert result.folded == 'people("Ada")'
