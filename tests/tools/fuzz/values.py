"""Values that a careless server trips over, by the place in a request where they stand."""

ACCEPTS: list[tuple[bytes, bytes]] = [
    (b"Accept", b"application/json;odata=nometadata"),
    (b"Accept", b"application/json;odata=minimalmetadata"),
    (b"Accept", b"application/json;odata=fullmetadata"),
    (b"Accept", b"application/atom+xml"),
    (b"Accept", b"*/*"),
]
SHORT_TEXTS = [
    "", " ", "a", "'", "''", '"', "\\", "/", "#", "?", "%", "+", "&", "=", ",", "(", ")", ";", "é", "中",
    "😀", "\x00", "\x01", "\x1f", "\x7f", "\x85", "\ufeff", "\uffff", "\ud800", "\udc00", "\u202e", "ab'c",
]  # fmt: skip
ODD_TEXTS = [
    *SHORT_TEXTS, "a" * 300, "中" * 512, "x" * 1024, "x" * 1025, "x" * 33_000, "${7*7}", "'; DROP TABLE entity_1; --",
    "%s%s%n", "$1", "{relation}",
]  # fmt: skip
PATH_PIECES = [
    b"fuzz", b"fuzz()", b"(PartitionKey='a',RowKey='b')", b"(RowKey='b', PartitionKey='a')", b"('x')",
    b"PartitionKey", b"RowKey", b"Tables", b"tables('", b"$batch", b"%24batch", b"$metadata", b"$Metrics",
    b"%27", b"%2F", b"%5C", b"%00", b"%zz", b"%", b"%2", b"..", b".", b"/", b"//", b"\\", b"'", b"''",
    b'"', b"%22", b"(", b")", b"((((", b",", b"=", b"%C3%A9", b"%FF", b"%ED%A0%80", b"%F0%9F%98%80",
    b"%E2%80%AE", b"%0D%0A", b"%0a", b"+", b"%2B", b"%25", b"%2525", b"*", b"~", b"[", b"{", b"|", b"^",
    b"`", b"<", b">", b";", b":", b"@", b"-secondary", b"%20", b"A" * 3000, b"%41" * 999,
    b"(PartitionKey='" + b"%27%27" * 700 + b"',RowKey='')", b"http://other/", b"/ui/", b"null",
    b"undefined",
]  # fmt: skip
UNSENDABLE_PIECES = [b"\xc3\xa9", b"\xff", b"\x01", b"\x7f", b"#", b"\xed\xa0\x80"]
PROPERTIES = [
    "PartitionKey", "RowKey", "Timestamp", "n", "s", "missing", "É", "_", "TableName", "a b", "2x",
    "odata.type",
]  # fmt: skip
LITERALS = [
    "'p'", "''", "'it''s'", "'", "1", "-1", "0", "2147483648", "9223372036854775807L",
    "9223372036854775808L", "1L", "1.5", "1e400", "-0.0", "NaN", "INF", "-INF", "true", "false", "null",
    "datetime'2020-01-01T00:00:00Z'", "datetime'x'", "datetime'0001-01-01'",
    "guid'c9da6455-213d-42c9-9a79-3e9149a57833'", "guid'x'", "X'0aff'", "X'0'", "binary''", '"p"',
    "'\x00'", "'\ud800'", "'😀'", "1" * 400, "'" + "x" * 2000 + "'", "startswith(s,'a')", "length(s)",
    "1 add 2", "%27",
]  # fmt: skip
OPERATORS = ["eq", "ne", "gt", "ge", "lt", "le", "eq", "ge", "lt", "EQ", "==", "=", "and", "in", "has", ""]
SHAPES = [
    "{0} and {1}", "{0} or {1}", "not ({0})", "not {0}", "({0}) and ({1})", "{0} and not ({1} or {0})",
    "{0} {1}", "(({0})", "{0} and", "or {0}", "{0}and{1}", "not not ({0})", "({0}) eq ({1})", "()",
    "{0}\t\n and  {1}", "{0}",
]  # fmt: skip
ODD_FILTERS = [
    "(" * 5000, "not " * 3000 + "true", "(" * 60 + "n eq 1" + ")" * 60, " or ".join(["n eq 1"] * 150), "n",
    "not n", "true", "1", "'x'", "*", "$", "\x00", "n eq 1;", "n eq 1 -- ", "n eq 1 or 1 eq 1",
    "((((((((((n eq 1))))))))))", "/n eq 1", "n/m eq 1", "s/any(x: x eq 1)", "cast(n,'Edm.Int64') eq 1L",
    "n eq @p", "'a' eq 'a'", "PartitionKey eq PartitionKey",
]  # fmt: skip
TOPS = ["0", "1", "1000", "1001", "-1", "", "x", "1e3", "٣", "9" * 30, "1.0", "+5", " 7 ", "0x10", "NaN"]
SELECTS = [
    "", "n", "n,s", "*", "PartitionKey,n", "n,,s", ",", "missing", "É", "a b", "n" * 300,
    ",".join("abcdef") * 60, "\x00", "'",
]  # fmt: skip
TOKENS = [
    "", "1!4!cA--", "1!4!cg--", "1!0!", "1!8!U21pdGg-", "1!3!abc", "1!4!////", "1!99999!x", "2!4!cA--", "x",
    "1!4!AA--", "1!8!7aCA7bCA",
]  # fmt: skip
FORMATS = [
    "json", "atom", "application/json;odata=fullmetadata", "text/html", "",
    "application/json;odata=verbose", "\x00",
]  # fmt: skip
OPTION_NAMES = [
    "$filter", "$orderby", "$skip", "$count", "$x", "timeout", "comp", "restype", "api-version", "sv",
    "sig", "", "x", "$Filter",
]  # fmt: skip
ODD_VALUES = [
    b"", b" ", b"*", b"x", b"0", b"-1", b"\xff", b"caf\xc3\xa9", b"a,b", b";", b"=", b'"', b"'", b"\t",
    b"a" * 2000, b"application/json", b"application/json;odata=verbose", b"application/json;q=x",
    b"text/plain", b"*/*;q=0", b"multipart/mixed", b"multipart/mixed; boundary=",
]  # fmt: skip
HEADER_VALUES: dict[bytes, list[bytes]] = {
    b"If-Match": [
        b"*", b'W/"x"', b'"x"', b'W/"a", W/"b"', b"W/", b"W/\"datetime'x'\"",
        b"W/\"datetime'2020-13-45T00%3A00%3A00Z'\"", b"W/\"datetime'9999-12-31T23%3A59%3A59.99999999Z'\"",
    ],
    b"If-None-Match": [b"*", b'W/"x"'],
    b"Prefer": [b"return-no-content", b"return-content, return-no-content", b"respond-async"],
    b"Accept": [value for _, value in ACCEPTS] + [b"application/json; odata = nometadata", b"application/xml;q=0.1"],
    b"x-ms-version": [b"2009-04-14", b"2012-02-12", b"2015-12-11", b"1999-01-01", b"2019-02-30", b"20190202"],
    b"Content-Type": [b"application/json", b"application/atom+xml", b"APPLICATION/JSON; charset=utf-16"],
    b"X-HTTP-Method": [b"MERGE", b"PUT", b"DELETE", b"PATCH", b"merge", b"GET", b"POST", b"FOO"],
    b"Content-MD5": [b"1B2M2Y8AsgTpgAmY7PhCfg==", b"AAAA", b"!!!!", b"d41d8cd98f00b204e9800998ecf8427e"],
    b"x-ms-date": [b"Thu, 01 Jan 1970 00:00:00 GMT", b"yesterday", b"Fri, 31 Feb 2026 25:61:61 GMT", b"9" * 50],
    b"Date": [b"Thu, 01 Jan 1970 00:00:00 GMT", b"x"],
    b"DataServiceVersion": [b"3.0;NetFx", b"1.0", b"9.9", b"x"],
    b"x-ms-client-request-id": [b"id", b"x" * 1024, b"x" * 1025],
    b"Host": [
        b"", b"localhost", b"[::1]:80", b"a b", b"devstoreaccount1.table.localhost", b"x:9", b"\xff", b"a@b", b"a/b",
    ],
    b"Expect": [b"100-continue", b"200-ok"],
    b"Accept-Encoding": [b"gzip, br", b"*"],
    b"Content-Encoding": [b"gzip"],
    b"Range": [b"bytes=0-1"],
    b"Origin": [b"http://example.com", b"null"],
    b"Access-Control-Request-Method": [b"PUT", b"FOO"],
    b"Upgrade": [b"h2c", b"websocket"],
    b"Connection": [b"keep-alive", b"close", b"upgrade", b"Upgrade, HTTP2-Settings"],
    b"X-Forwarded-For": [b"1.2.3.4"],
    b"x-ms-weird": [b"1"],
}  # fmt: skip
NAMES = [
    "PartitionKey", "RowKey", "Timestamp", "n", "s", "É", "x" * 256, "a-b", "2x", "", "odata.type",
    "odata.etag", "odata.x", "PartitionKey@odata.type", "n@odata.type", "s@odata.type",
    "n@odata.type@odata.type", "@odata.type", "n@", "\x00", "\ud800", "😀",
]  # fmt: skip
TYPES = [
    "Edm.String", "Edm.Int32", "Edm.Int64", "Edm.Double", "Edm.Boolean", "Edm.DateTime", "Edm.Guid",
    "Edm.Binary", "Edm.Single", "Edm.Byte", "Collection(Edm.String)", "", "edm.int32", "x",
]  # fmt: skip
RAW_VALUES = [
    "1", "0", "-1", "1.0", "-0.0", "1e400", "-1e400", "5e-324", "2147483648", "9223372036854775808",
    "1" * 500, "0." + "1" * 500, "NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "true",
    "false", "null", "True", "[]", "{}", "[1,[2]]", '{"a":{}}', "", '"\\ud800"', '"\\udc00\\ud800"',
    '"\\u0000"', '"\\x"', '"\x01"', '"unterminated', '"9223372036854775808"', '"2020-01-01T00:00:00Z"',
    '"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59.99999999Z"', '"c9da6455-213d-42c9-9a79-3e9149a57833"',
    '"AA=="', '"AA="', '"NaN"', "[" * 1000 + "]" * 1000, '"' + "x" * 33_000 + '"', "1e5", "1E+16",
]  # fmt: skip
ODD_BODIES: list[bytes] = [
    b"", b" ", b"{", b"}", b"{}", b"[]", b"null", b"1", b'"x"', b"{}{}", b"{,}", b"{'a':1}", b"\x00",
    b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b'\xef\xbb\xbf{"PartitionKey":"p","RowKey":"bom"}',
    b'{"PartitionKey":"p","RowKey":"\xff"}', b'{"PartitionKey":"p","RowKey":"\xed\xa0\x80"}',
    b"[" * 100_000, b'{"a":' * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"<entry/>", b"a=b",
    b"{" + b" " * 100_000 + b"}", b'{"PartitionKey":"p","RowKey":"r"',
    b'{"PartitionKey":"p","PartitionKey":"q","RowKey":"r"}', b"\x1f\x8b\x08\x00", b"{/*c*/}",
    b"{" + b",".join(b'"p%d":%d' % (n, n) for n in range(260)) + b"}", b'{"TableName":"fuzz"}',
    b'{"TableName":5}', b'{"TableName":"\\u0000"}',
]  # fmt: skip
AUTHORIZATIONS = [
    b"", b"SharedKey", b"SharedKey ", b"SharedKey devstoreaccount1", b"SharedKey devstoreaccount1:",
    b"SharedKey devstoreaccount1:AAAA", b"SharedKey devstoreaccount1:!!!", b"SharedKey :x",
    b"SharedKeyLite devstoreaccount1:" + b"A" * 43 + b"=", b"Basic dTpw", b"Bearer x",
    b"SharedKey nobody:" + b"A" * 43 + b"=", b"sharedkey devstoreaccount1:x",
    b"SharedKey devstoreaccount1:" + b"A" * 60_000, b"\xff", b"SharedKey \xff:\xff", b"SharedKey a:b:c",
    b"Negotiate", b"SharedKey devstoreaccount1:" + "é".encode(),
]  # fmt: skip
