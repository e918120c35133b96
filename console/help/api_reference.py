"""API reference from the OpenAPI document, grouped, with a curl command per operation."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from storage.rest import documentation

Schema = Mapping[str, Any]
_PLACES: Final = ("path", "query", "header")
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_COLOURS: Final = {"get": "info", "delete": "danger"}  # colours of badges
_TYPE_NAMES: Final = {"date-time": "time", "uri": "address"}


class Member(NamedTuple):
    """Field of a body, or parameter with its location; dots in ``name`` denote nesting."""

    name: str
    type: str
    is_required: bool
    description: str
    place: str = ""


class Answer(NamedTuple):
    status: str
    description: str
    members: Sequence[Member]


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    method: str
    colour: str
    path: str
    summary: str
    description: str
    scope: str
    role: str
    parameters: Sequence[Member]
    body: Sequence[Member]
    answers: Sequence[Answer]
    errors: Sequence[Answer]
    curl: str


class Group(NamedTuple):
    name: str
    operations: Sequence[Operation]


@cache
def groups() -> Sequence[Group]:
    document = documentation.document()
    by_tag: dict[str, list[Operation]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                given = _resolve(methods[method], document["components"]["schemas"])
                by_tag[given["tags"][0]].append(_operation(method, path, given))
    return [Group(name, operations) for name, operations in by_tag.items()]


def _resolve(given: Any, components: Schema) -> Any:
    """Resolve references; members beside a reference take precedence."""
    if isinstance(given, list):
        return [_resolve(item, components) for item in given]
    if not isinstance(given, dict):
        return given
    resolved: dict[str, Any] = {}
    if "$ref" in given:
        resolved = _resolve(components[given["$ref"].rpartition("/")[2]], components)
    if "allOf" in given:
        resolved = _resolve(given["allOf"][0], components)
    beside = {name: value for name, value in given.items() if name not in {"$ref", "allOf"}}
    return {**resolved, **{name: _resolve(value, components) for name, value in beside.items()}}


def _operation(method: str, path: str, given: Schema) -> Operation:
    body = _content(given.get("requestBody", {}))
    examples = [example["value"] for example in body.get("examples", {}).values()]
    answers = [
        Answer(status, answer.get("description", ""), list(_members(_content(answer).get("schema", {}))))
        for status, answer in given["responses"].items()
    ]
    return Operation(
        given["operationId"],
        method.upper(),
        _COLOURS.get(method, "accent"),
        path,
        given["summary"],
        given.get("description", ""),
        given["x-scope"],
        given["x-role"],
        sorted(map(_parameter, given.get("parameters", ())), key=lambda it: _PLACES.index(it.place)),
        list(_members(body.get("schema", {}))),
        [answer for answer in answers if answer.status < "400"],
        [answer for answer in answers if answer.status >= "400"],
        curl(
            method.upper(),
            path,
            examples[0] if examples else None,
            sends_file="requestBody" in given and not body,
        ),
    )


def _content(given: Schema) -> Schema:
    found: Schema = given.get("content", {}).get("application/json", {})
    return found


def _parameter(given: Schema) -> Member:
    required, description = given.get("required", False), given.get("description", "")
    return Member(given["name"], _type(given["schema"]), required, description, given["in"])


def _members(given: Schema, prefix: str = "") -> Iterator[Member]:
    if given.get("type") == "array":
        yield from _members(given["items"], prefix)
        return
    for name, inner in given.get("properties", {}).items():
        required = name in given.get("required", ())
        yield Member(f"{prefix}{name}", _type(inner), required, inner.get("description", ""))
        within = "[]." if inner.get("type") == "array" else "."
        yield from _members(inner, f"{prefix}{name}{within}")


def _type(given: Schema) -> str:
    if "enum" in given:
        return " | ".join(str(value) for value in given["enum"] if value not in ("", None))
    if given.get("type") == "array":
        return f"[{_type(given['items'])}]"
    name = _TYPE_NAMES.get(given.get("format", ""), given.get("type", "any"))
    return f"{name} | null" if given.get("nullable") else str(name)


def curl(method: str, path: str, example: Any, *, sends_file: bool = False) -> str:
    """Build a curl command; placeholders are in braces."""
    lines = ['curl -H "Authorization: Bearer $TABLERO_TOKEN"']
    if method != "GET":
        lines[0] += f" -X {method}"
    if example is not None:
        data = shlex.quote(json.dumps(example, ensure_ascii=False))
        lines.append(f'  -H "Content-Type: application/json" -d {data}')
    if sends_file:
        lines.append("  -T people.csv")
    lines.append(f'  "$TABLERO_URL{path}"')
    return " \\\n".join(lines)
