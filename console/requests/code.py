"""Code that repeats a logged request, with placeholders for keys, values and credentials."""

from typing import Final

from console.snippets import LANGUAGES, Query, Snippet, Target
from console.snippets.literals import quote_shell
from storage.domain.access.grants import Operation
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import StorageError
from storage.domain.filters.parser import parse
from storage.domain.requests.cleaning import LEFT_OUT
from storage.domain.values.numbers import read_number
from storage.models import RecordedRequest

_PLACEHOLDER: Final = "VALUE"
_KEY: Final = EntityKey("PARTITION-KEY", "ROW-KEY")
_ORDER: Final = ("curl", "python", "javascript", "csharp", "go")
# the place of the snippet for an operation among those of an entity
_OF_ENTITY: Final = {
    Operation.QUERY_ENTITY: 0,
    Operation.INSERT_ENTITY: 1,
    Operation.MERGE_ENTITY: 2,
    Operation.UPDATE_ENTITY: 2,
    Operation.INSERT_OR_MERGE_ENTITY: 2,
    Operation.INSERT_OR_REPLACE_ENTITY: 2,
    Operation.DELETE_ENTITY: 3,
}


def write_code(request: RecordedRequest, endpoint: str) -> list[Snippet]:
    """Return code that repeats the request, in curl and each language that supports it."""
    target = Target(endpoint, request.account.name, request.table_name)
    if request.operation in _OF_ENTITY:
        place = _OF_ENTITY[Operation(request.operation)]
        entity = Entity(_KEY, {})
        return [
            Snippet(LANGUAGES[slug].name, LANGUAGES[slug].write(target, entity)[place].code)
            for slug in _ORDER
        ]
    query = _read_query(request) if request.operation == Operation.QUERY_ENTITIES else None
    if query is not None:
        return [Snippet(LANGUAGES[slug].name, LANGUAGES[slug].write_query(target, query)) for slug in _ORDER]
    return [Snippet(LANGUAGES["curl"].name, _write_curl(request, endpoint))]


def _read_query(request: RecordedRequest) -> Query | None:
    """Parse the query of a logged request; None if it is invalid, as in most refused ones."""
    options = dict(request.options)
    text = options.get("$filter", "").replace(LEFT_OUT, f"'{_PLACEHOLDER}'")
    try:
        root = parse(text) if text else None
    except StorageError:
        return None
    names = tuple(name.strip() for name in options.get("$select", "").split(",") if name.strip())
    return Query(root, names, read_number(options.get("$top", "")) or 50)


def _write_curl(request: RecordedRequest, endpoint: str) -> str:
    path = request.path.removeprefix(f"/{request.account.name}").replace(LEFT_OUT, _PLACEHOLDER)
    lines = [f'curl --get -X {quote_shell(request.method)} "{_escape(endpoint + path)}?$TABLES_SAS"']
    lines += [
        f"  --data-urlencode {quote_shell(f'{name}={value.replace(LEFT_OUT, _PLACEHOLDER)}')}"
        for name, value in request.options
        if name != LEFT_OUT
    ]
    if request.version:
        lines.append(f"  -H {quote_shell(f'x-ms-version: {request.version}')}")
    return " \\\n".join([*lines, "  -H 'Accept: application/json;odata=nometadata'"]) + "\n"


def _escape(text: str) -> str:
    """Escape a text for double quotes in a shell, without expansion."""
    for character in '\\"$`':
        text = text.replace(character, f"\\{character}")
    return text
