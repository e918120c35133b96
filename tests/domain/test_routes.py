"""Every form of a path: hosts, accounts, tables, keys."""

import pytest
from hypothesis import given

from storage.domain.access.grants import Operation
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import (
    HostInformationNotPresent,
    InvalidInput,
    InvalidUri,
    MediaTypeNotSupported,
    MethodNotAllowed,
    NotImplemented,
)
from storage.domain.requests.routes import (
    Address,
    Target,
    TargetKind,
    inner_path,
    resolve_address,
    resolve_operation,
    resolve_target,
)
from storage.protocol.json_format import entity_link
from tests.cost import costs_less_than
from tests.strategies import keys

KEYED = "/people(PartitionKey='p',RowKey='r')"


def aim(path, method="GET"):
    return resolve_target(path.encode() if isinstance(path, str) else path, method, "devstoreaccount1")


def entity(partition_key, row_key, table="people"):
    return Target(TargetKind.ENTITY, table, EntityKey(partition_key, row_key))


# where: host and account


@pytest.mark.parametrize(
    ("path", "account", "rest"),
    [
        ("/account1/people", "account1", "/people"),
        ("/account1", "account1", ""),
        ("/account1/", "account1", "/"),
        ("//account1//people", "account1", "//people"),
        ("/account%31/people", "account1", "/people"),
        ("/account1-secondary/people", "account1-secondary", "/people"),
        ("/account1/p(PartitionKey='a%2Fb',RowKey='')", "account1", "/p(PartitionKey='a%2Fb',RowKey='')"),
    ],
)
def test_the_account_is_the_first_part_of_the_path(path, account, rest):
    result = resolve_address(path.encode(), b"127.0.0.1:10002", "http", ())

    secondary = account.endswith("-secondary")
    assert result == Address("account1", secondary, False, f"http://127.0.0.1:10002/{account}", rest.encode())


SUFFIXES = ("table.localhost", "table.example.com")


@pytest.mark.parametrize(
    ("host", "secondary"),
    [
        ("account1.table.localhost:10002", False),
        ("ACCOUNT1.Table.LocalHost", False),
        ("account1-secondary.table.example.com", True),
        ("account1.table.example.com.", False),  # absolute names, which no search list is tried for
        ("Account1-Secondary.table.example.com.:10002", True),
    ],
)
def test_the_account_is_the_first_label_of_a_host_with_a_known_suffix(host, secondary):
    result = resolve_address(b"/people", host.encode(), "https", SUFFIXES)

    assert result == Address("account1", secondary, True, f"https://{host}", b"/people")


def test_other_hosts_have_the_account_in_the_path():
    for host in (
        "localhost", "127.0.0.1:10002", "[::1]:10002", "azurite", "account1.table.other", "table.localhost",
    ):  # fmt: skip
        result = resolve_address(b"/account1/people", host.encode(), "http", SUFFIXES)

        assert result == Address("account1", False, False, f"http://{host}/account1", b"/people")


@pytest.mark.parametrize("host", ["tablero:10002", "tables.example.org", "127.example.org", "a-secondary.b"])
@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
def test_the_signature_supplies_an_omitted_account(host, scheme):
    signed = f"{scheme} account1:bWFj".encode()
    result = resolve_address(b"/people", host.encode(), "http", SUFFIXES, signed)
    assert result == Address("account1", host.startswith("a-"), True, f"http://{host}", b"/people")
    result = resolve_address(
        b"/", host.encode(), "http", SUFFIXES, signed, b"restype=service&comp=properties"
    )
    assert (result.account, result.rest) == ("account1", b"/")
    result = resolve_address(
        b"/other", host.encode(), "http", SUFFIXES, signed, b"restype=service&comp=stats"
    )
    assert (result.account, result.host_style) == ("other", False)
    result = resolve_address(b"/account1/people", host.encode(), "http", SUFFIXES, signed)
    assert (result.account, result.host_style, result.rest) == ("account1", False, b"/people")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:10002", "127.0.0.1", "127.0.0.1:10002", "[::1]:10002"]
)
def test_a_signature_does_not_replace_the_account_in_the_path(host):
    result = resolve_address(b"/other/people", host.encode(), "http", (), b"SharedKey account1:bWFj")
    assert (result.account, result.host_style) == ("other", False)


def test_refuses_a_request_without_a_sound_host_or_account():
    for host in (
        None, b"", b" ", b"a b", b"host:port", b"a/b", b'"', b"h\xc3\xb6st", b"host:123456", b"[::1",
        b"a\r\nb",
    ):  # fmt: skip
        with pytest.raises(HostInformationNotPresent):
            resolve_address(b"/account1/people", host, "http", SUFFIXES)
    with pytest.raises(InvalidUri):
        resolve_address(b"/%ff/people", b"localhost", "http", ())


# targets of paths

PATHS = [
    ("", Target(TargetKind.SERVICE)),
    ("//Tables", Target(TargetKind.TABLES)),
    ("/Tables( )", Target(TargetKind.TABLES)),
    ("/TABLES()", Target(TargetKind.TABLES)),
    ("/Tables%28%27people%27%29", Target(TargetKind.TABLE, "people")),
    ("/tables( 'People' )", Target(TargetKind.TABLE, "People")),
    ("/Tables('a''b')", Target(TargetKind.TABLE, "a'b")),
    ("/People", Target(TargetKind.ENTITIES, "People")),
    ("/%70eople/", Target(TargetKind.ENTITIES, "people")),
    ("/$MetricsHourPrimary", Target(TargetKind.ENTITIES, "$MetricsHourPrimary")),
    ("/not a name", Target(TargetKind.ENTITIES, "not a name")),
    ("/%24batch", Target(TargetKind.BATCH)),
]


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_resources(path, expected):
    assert aim(path) == expected


KEYS = [
    ("RowKey='b',PartitionKey='a'", ("a", "b")),
    (" PartitionKey = 'a' , RowKey = 'b' ", ("a", "b")),
    ("PartitionKey%3D%27a%27%2CRowKey%3D%27b%27", ("a", "b")),
    ("PartitionKey='O%27%27Brien',RowKey='%27%27'", ("O'Brien", "'")),
    ("PartitionKey='a,b=(c)',RowKey='d),RowKey=''e'", ("a,b=(c)", "d),RowKey='e")),
    ("PartitionKey='a+b',RowKey='a%2Bb'", ("a+b", "a+b")),
    ("PartitionKey='é%c3%a9',RowKey='%2520'", ("éé", "%20")),
    ("PartitionKey='a%2Fb',RowKey='%5C%23%3F'", ("a/b", "\\#?")),
    ("PartitionKey='%0A',RowKey='%00'", ("\n", "\x00")),
    ("PartitionKey='PartitionKey=',RowKey=',RowKey='", ("PartitionKey=", ",RowKey=")),
    ("PartitionKey='%',RowKey='%zz'", ("%", "%zz")),
]


@pytest.mark.parametrize(("predicate", "expected"), KEYS)
def test_keys(predicate, expected):
    assert aim(f"/people({predicate})") == entity(*expected)


@given(keys, keys)
def test_the_link_of_an_entity_leads_to_it(partition_key, row_key):
    assert aim("/" + entity_link("people", partition_key, row_key)) == entity(partition_key, row_key)


@pytest.mark.parametrize(
    "path",
    [
        *(
            f"/people({predicate})"
            for predicate in (
                "PartitionKey='a'", "RowKey='b'", "PartitionKey='a',RowKey='b", "PartitionKey='a,RowKey='b'",
                "PartitionKey='a'RowKey='b'", "PartitionKey='a',RowKey='b',", "PartitionKey='a',PartitionKey='b'",
                "PartitionKey='a',RowKey='b',RowKey='c'", "PartitionKey='a',RowKey='b',Other='c'",
                "PartitionKey='O'Brien',RowKey='b'", "PartitionKey=a,RowKey=b", 'PartitionKey="a",RowKey="b"',
                "partitionkey='a',rowkey='b'", "'a','b'", "PartitionKey", "PartitionKey='a';RowKey='b'",
                "PartitionKey=5,RowKey=6", ",", "PartitionKey='a/b',RowKey='c'",
            )
        ),
        "/people%28PartitionKey='a',RowKey='b/c'%29", "/Tables(people)", "/Tables('a','b')", "/Tables('a'b')",
    ],
)  # fmt: skip
def test_refuses_invalid_keys(path):
    with pytest.raises(InvalidInput) as refusal:
        aim(path)

    assert refusal.value.text == "Bad Request - Error in query syntax."


@pytest.mark.parametrize(
    "path",
    [
        "/people(PartitionKey='a',RowKey='b'", "/people(", "/people)x(", "/people()x", "/Tables(",
        "/Tables('a)",
    ],
)  # fmt: skip
def test_refuses_unclosed_parentheses(path):
    with pytest.raises(InvalidInput):
        aim(path)


def test_refuses_a_single_unnamed_key():
    for path in ("/people('x')", "/people( 'x' )", "/people('')"):
        with pytest.raises(InvalidInput) as refusal:
            aim(path)
        assert refusal.value.text == (
            "The number of keys specified in the URI does not match number of key properties "
            "for the resource 'devstoreaccount1.people'."
        )


@pytest.mark.parametrize(
    ("path", "error"),
    [
        *(
            (path, InvalidUri)
            for path in (b"/%ff", b"/people(PartitionKey='%ff',RowKey='')", b"/\xff", b"/a\xed\xa0\x80")
        ),
        *((path, InvalidUri) for path in ("/people/places", "/people//places", "/a/b/c", "/Tables/people")),
        ("/$metadata", NotImplemented),
        ("/people/$batch", MediaTypeNotSupported),
    ],
)
def test_refuses_other_paths(path, error):
    with pytest.raises(error):
        aim(path, "POST")


def test_hostile_predicates_take_no_time():
    for predicate in (
        "'" * 60_001,
        "PartitionKey='" + "''" * 30_000,
        "PartitionKey=''," * 4_000,
        " " * 60_000 + "x",
    ):
        with costs_less_than(3), pytest.raises(InvalidInput):
            aim(f"/people({predicate})")


# paths below a table


def test_an_sdk_with_a_table_url_as_service_url():
    assert aim("/people/Tables", "POST") == Target(TargetKind.ENTITIES, "people")
    with pytest.raises(NotImplemented):
        aim("/people/Tables", "GET")
    with pytest.raises(MethodNotAllowed):
        aim("/people/Tables", "PUT")
    assert aim("/people/Tables('x')", "DELETE") == Target(TargetKind.UNNAMED, "people")


# URIs inside a batch

PATH_STYLE = resolve_address(b"/account1/$batch", b"127.0.0.1:10002", "http", ())
HOST_STYLE = resolve_address(b"/$batch", b"account1.table.localhost", "http", SUFFIXES)


OPERATIONS = [
    ("GET", "/Tables", "", False, Operation.QUERY_TABLES),
    ("POST", "/Tables", "", False, Operation.CREATE_TABLE),
    ("GET", "/Tables('people')", "", False, Operation.QUERY_TABLE),
    ("DELETE", "/Tables('people')", "", True, Operation.DELETE_TABLE),
    ("GET", "/people()", "", False, Operation.QUERY_ENTITIES),
    ("POST", "/people", "", True, Operation.INSERT_ENTITY),
    ("GET", KEYED, "", False, Operation.QUERY_ENTITY),
    ("PUT", KEYED, "", True, Operation.UPDATE_ENTITY),
    ("PUT", KEYED, "", False, Operation.INSERT_OR_REPLACE_ENTITY),
    ("PATCH", KEYED, "", True, Operation.MERGE_ENTITY),
    ("MERGE", KEYED, "", False, Operation.INSERT_OR_MERGE_ENTITY),
    ("DELETE", KEYED, "", True, Operation.DELETE_ENTITY),
    ("POST", "/$batch", "", False, Operation.ENTITY_GROUP_TRANSACTION),
    ("GET", "/people", "acl", False, Operation.GET_TABLE_ACL),
    ("PUT", "/people", "acl", False, Operation.SET_TABLE_ACL),
    ("GET", "/", "properties", False, Operation.GET_SERVICE_PROPERTIES),
    ("PUT", "", "properties", False, Operation.SET_SERVICE_PROPERTIES),
    ("GET", "/", "stats", False, Operation.GET_SERVICE_STATS),
    ("PUT", "/Tables", "", False, None),
    ("PUT", "/people", "", False, None),
    ("POST", KEYED, "", False, None),
    ("GET", "/$batch", "", False, None),
    ("POST", "/", "", False, None),
    ("DELETE", "/people", "acl", False, None),
    ("GET", KEYED, "acl", False, None),
    ("GET", "/people", "properties", False, None),
    ("GET", "/", "list", False, None),
]


@pytest.mark.parametrize(("method", "path", "comp", "conditional", "expected"), OPERATIONS)
def test_requests_resolve_to_operations(method, path, comp, conditional, expected):
    options = {"comp": comp, "restype": "service"} if comp else {}
    target = resolve_target(path.encode(), method, "account1")

    assert resolve_operation(target, method, options, conditional=conditional) is expected


def test_every_operation_but_the_preflight_has_a_route():
    assert {row[-1] for row in OPERATIONS} == {None, *Operation} - {Operation.PREFLIGHT}


@pytest.mark.parametrize(
    ("host", "secondary"),
    [
        (b"tables-secondary.example.com:10002", True),
        (b"Tables-Secondary.example.com", True),
        (b"tables-secondary", False),
        (b"tables.example-secondary.com", False),
    ],
)
def test_a_host_may_name_the_secondary(host, secondary):
    assert resolve_address(b"/account1/people", host, "http", ()).secondary is secondary


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:10002/account1/people", "https://somewhere.else/account1/people", "/account1/people",
        "HTTP://127.0.0.1:10002//account1/people?$format=application%2Fjson", "account1/people", "/people", "people",
        "http://127.0.0.1:10002/account1-secondary/people", "people?a=http://x/account1/y",
    ],
)  # fmt: skip
def test_uris_in_a_batch_of_path_style(uri):
    assert inner_path(uri.encode(), PATH_STYLE).strip(b"/") == b"people"


@pytest.mark.parametrize(
    "uri",
    [
        "http://account1.table.localhost/people",
        "https://account1.table.localhost:443/people?a=b",
        "/people",
        "people",
    ],
)
def test_uris_in_a_batch_of_host_style(uri):
    assert inner_path(uri.encode(), HOST_STYLE) == b"people"


def test_a_table_may_bear_the_name_of_the_account():
    assert inner_path(b"/account1", PATH_STYLE) == b"account1"
    assert inner_path(b"/account1/account1", PATH_STYLE) == b"account1"
    assert inner_path(b"http://account1.table.localhost/account1", HOST_STYLE) == b"account1"


def test_batch_keys_may_look_like_uris():
    uri = b"http://127.0.0.1:10002/account1/people(PartitionKey='a%3F',RowKey='http:')"

    assert aim(inner_path(uri, PATH_STYLE)) == entity("a?", "http:")
