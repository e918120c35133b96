"""Replay of a recording: its requests go to our hosts, with our signatures and values of earlier answers."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote, unquote

from tests.wire import tokens
from tests.wire.client import Connection, Endpoint, Reply, write

from .comparison import Answer, Difference, Rules
from .reading import Exchange, Message, Recording

_HOST = re.compile(
    r"https?://([a-z0-9_]+?)(-secondary)?\.table\.(core\.windows\.net|cosmos\.azure\.com)(?::443)?",
    re.IGNORECASE,
)
_TABLE = re.compile(r"/Tables\('(.+)'\)")
_CLOCK = ("start", "end")  # placeholders of recorders for the times of a token
_TOKENS = ("NextPartitionKey", "NextRowKey", "NextTableName")
_WRONG_KEY = base64.b64encode(bytes(64)).decode()  # for requests that were refused because of their signature
_MOMENT = re.compile(r"W/\"datetime'[^']+'\"")
_BOUNDARY = re.compile(rb"--(batch_\S+)\r?\n")
_POLICY_TIME = re.compile(r"(<(?:Start|Expiry)>)(\d{4}-\d\d-\d\d)")
# set again for each request, or belonging to the recorded connection
_OURS = {
    "authorization", "host", "content-length", "date", "x-ms-date", "connection", "accept-encoding", "user-agent",
    "transfer-encoding", "expect", "traceparent",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Accounts:
    """One account of each kind, whose tables the replay may delete."""

    storage: Endpoint
    cosmos: Endpoint

    def choose(self, url: str) -> Endpoint:
        return self.cosmos if ".table.cosmos." in url else self.storage


@dataclass(frozen=True, slots=True)
class Replayed:
    exchange: Exchange
    differences: list[Difference]


def replay(recording: Recording, accounts: Accounts, rules: Rules) -> Iterator[Replayed]:
    endpoint = accounts.choose(recording.exchanges[0].url if recording.exchanges else "")
    delete_tables(endpoint)
    with closing(Connection(endpoint)) as connection:
        memory = _Memory()
        for spec in _set_up(recording):
            connection.send(write(spec, endpoint))
        for exchange in recording.exchanges:
            reply = connection.send(_prepare(exchange, endpoint, memory))
            assert reply is not None
            message = Message(reply.headers, memory.shift_back(exchange, reply.body))
            memory.learn(exchange, reply)
            theirs = Answer(exchange.status, exchange.reason, exchange.answer, _recorded_names(exchange))
            ours = Answer(reply.status, reply.reason, message, _our_names(endpoint))
            yield Replayed(exchange, list(rules.compare(theirs, ours)))
        if any(it.method == "PUT" and "comp=properties" in it.url for it in recording.exchanges):
            line = "PUT /?restype=service&comp=properties"
            connection.send(write({"line": line, "body": _NEW_PROPERTIES}, endpoint))


def _set_up(recording: Recording) -> Iterator[dict[str, str]]:
    """Yield requests that bring an empty account into the recorded initial state: its tables and service properties."""
    known: set[str] = set()
    for name, is_new in _mentioned_tables(recording):
        if name not in known and not is_new:
            yield {"line": "POST /Tables", "json": json.dumps({"TableName": name})}
        known.add(name)
    properties = next((it for it in recording.exchanges if _is_get_properties(it)), None)
    if properties is not None:
        yield {
            "line": "PUT /?restype=service&comp=properties",
            "body": properties.answer.body.decode("utf-8-sig"),
        }


def _is_get_properties(exchange: Exchange) -> bool:
    return exchange.method == "GET" and exchange.status == 200 and "comp=properties" in exchange.url


def _mentioned_tables(recording: Recording) -> Iterator[tuple[str, bool]]:
    """Tables in the order in which answers tell that they are there, and whether they are created then."""
    for exchange in recording.exchanges:
        path = _HOST.sub("", exchange.url, count=1).partition("?")[0]
        if exchange.method == "POST" and path == "/Tables":
            name = json.loads(exchange.request.body).get("TableName", "")
            if exchange.status == 201 or b"TableAlreadyExists" in exchange.answer.body:
                yield name, exchange.status == 201
        elif exchange.method == "DELETE" and exchange.status == 204 and (match := _TABLE.fullmatch(path)):
            yield unquote(match[1]), False
        elif exchange.method == "GET" and path == "/Tables" and exchange.status == 200:
            yield from (
                (name, False) for name in re.findall(r'"TableName":"(\w+)"', exchange.answer.body.decode())
            )


def delete_tables(endpoint: Endpoint) -> None:
    with closing(Connection(endpoint)) as connection:
        while names := _list_tables(connection, endpoint):
            for name in names:
                connection.send(write({"line": f"DELETE /Tables('{quote(name)}')"}, endpoint))


_RETENTION = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
_METRICS = f"<Version>1.0</Version><Enabled>false</Enabled>{_RETENTION}"
_LOGGING = f"<Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>{_RETENTION}"
_NEW_PROPERTIES = (
    f"<StorageServiceProperties><Logging>{_LOGGING}</Logging><HourMetrics>{_METRICS}</HourMetrics>"
    f"<MinuteMetrics>{_METRICS}</MinuteMetrics><Cors/></StorageServiceProperties>"
)


def _list_tables(connection: Connection, endpoint: Endpoint) -> list[str]:
    reply = connection.send(write({"line": "GET /Tables"}, endpoint))
    assert reply is not None and reply.status == 200, reply
    return [table["TableName"] for table in reply.json()["value"]]


class _Memory:
    """Values of earlier answers for later requests: ETags and continuation tokens."""

    def __init__(self) -> None:
        self._ours: dict[str, str] = {}

    def learn(self, exchange: Exchange, reply: Reply) -> None:
        pairs = zip(_MOMENT.findall(_etags(exchange.answer)), _MOMENT.findall(_etags(reply)), strict=False)
        self._ours.update(pairs)
        for name in _TOKENS:
            recorded = exchange.answer.header(f"x-ms-continuation-{name}")
            if recorded and (answered := reply.header(f"x-ms-continuation-{name}")):
                self._ours[recorded] = answered

    def translate(self, text: str) -> str:
        return self._ours.get(text, text)

    def shift_back(self, exchange: Exchange, body: bytes) -> bytes:
        """Shift the times of access policies back to the recorded ones."""
        return _shift_policies(body, -_age(exchange)) if b"<SignedIdentifier" in body else body


def _etags(message: Message | Reply) -> str:
    body = message.body.decode("utf-8", "replace").replace('\\"', '"')
    return f"{message.header('ETag') or ''} {body}"


def _age(exchange: Exchange) -> timedelta:
    """Whole days since the request was recorded."""
    return timedelta(days=(datetime.now(UTC) - exchange.moment).days + 1)


def _shift_policies(body: bytes, age: timedelta) -> bytes:
    def shift(match: re.Match[str]) -> str:
        return match[1] + (datetime.fromisoformat(match[2]) + age).date().isoformat()

    return _POLICY_TIME.sub(shift, body.decode()).encode()


def _prepare(exchange: Exchange, endpoint: Endpoint, memory: _Memory):
    host = _HOST.match(exchange.url)
    side = replace(endpoint, url=endpoint.url + "-secondary") if host and host[2] else endpoint
    path, _, query = _HOST.sub("", exchange.url, count=1).partition("?")
    body = _translate_body(exchange, side, memory)
    headers = {name: "" for name, _ in exchange.request.headers if name.lower() not in _OURS}
    for name in headers:
        value = exchange.request.header(name) or ""
        headers[name] = memory.translate(value) if name.lower() in ("if-match", "if-none-match") else value
        if name.lower() == "content-type" and (boundary := _BOUNDARY.match(body)):
            headers[name] = f"multipart/mixed; boundary={boundary[1].decode()}"  # some recorders replace it
    spec = {"line": f"{exchange.method} ={side.root}{path}", "headers": _complete(headers, body, exchange)}
    parameters = parse_qsl(query, keep_blank_values=True)
    signer = (
        replace(endpoint, key=_WRONG_KEY) if b"AuthenticationFailed" in exchange.answer.body else endpoint
    )
    if any(name == "sig" for name, _ in parameters):
        query, spec["sign"] = _sign_anew(parameters, exchange, signer), "none"
    else:
        query, spec["key"] = _translate_query(query, memory), signer.key
    spec["line"] += f"?{query}" if query else ""
    outgoing = write(spec, endpoint)
    return replace(outgoing, body=body)


def _complete(headers: dict[str, str], body: bytes, exchange: Exchange) -> dict[str, str | bool]:
    """Return the headers of the request and no others: those that a wire case adds by itself are left out."""
    names = {name.lower() for name in headers}
    defaults = ("x-ms-version", "x-ms-client-request-id", "Accept", "DataServiceVersion")
    absent = {name: False for name in defaults if name.lower() not in names}
    # some recorders leave out the length of nothing
    has_body = exchange.method in ("POST", "PUT") or exchange.request.header("Content-Length") is not None
    return {**headers, **absent, **({"Content-Length": str(len(body))} if has_body else {})}


def _translate_body(exchange: Exchange, endpoint: Endpoint, memory: _Memory) -> bytes:
    body = exchange.request.body
    if b"<SignedIdentifier" in body:
        return _shift_policies(body, _age(exchange))
    if b"application/http" not in body:
        return body
    text = _HOST.sub(endpoint.url.rstrip("/"), body.decode("utf-8"))
    return _MOMENT.sub(lambda match: memory.translate(match[0]), text).encode()


def _translate_query(query: str, memory: _Memory) -> str:
    """Return the recorded query with current continuation tokens."""
    options = []
    for option in query.split("&") if query else []:
        name, _, value = option.partition("=")
        if name in _TOKENS:
            options.append(f"{name}={quote(memory.translate(unquote(value)), safe='')}")
        else:
            options.append(option)
    return "&".join(options)


def _sign_anew(parameters: list[tuple[str, str]], exchange: Exchange, endpoint: Endpoint) -> str:
    token = {name: value for name, value in parameters if name in _SIGNED}
    for name, hours in (("st", -1), ("se", 1)):
        if name in token:
            token[name] = _move(token[name], hours, exchange)
    signed = tokens.parameters(
        {"sas": {"sv": token["sv"], "se": False, **token}}, endpoint.account, endpoint.key
    )
    others = [(name, value) for name, value in parameters if name not in _SIGNED and name != "sig"]
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in [*others, *signed.items()])


_SIGNED = {*tokens.TABLE_FIELDS, *tokens.ACCOUNT_FIELDS}


def _move(moment: str, hours: int, exchange: Exchange) -> str:
    if moment in _CLOCK:
        return (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    recorded = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    return (recorded + (datetime.now(UTC) - exchange.moment)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _recorded_names(exchange: Exchange) -> list[tuple[str, str]]:
    """Return the recorded base URLs and account names; recorders replace the name in some places only."""
    text = f"{exchange.url} {exchange.answer.body.decode('utf-8', 'replace')} {json.dumps(exchange.answer.headers)}"
    results = {(match[0], match[1]) for match in _HOST.finditer(text)}
    results |= {
        (f"{base[:8]}{account}-secondary{base[8 + len(account) :]}", account) for base, account in results
    }
    bases = [(base, "{base}") for base, _ in results]
    types = [(f'"odata.type":"{account}.', '"odata.type":"{account}.') for _, account in results]
    return sorted(bases + types, key=lambda it: -len(it[0]))


def _our_names(endpoint: Endpoint) -> list[tuple[str, str]]:
    return [
        (f"{endpoint.url}-secondary", "{base}"),
        (endpoint.url, "{base}"),
        (f'"odata.type":"{endpoint.account}.', '"odata.type":"{account}.'),
    ]
