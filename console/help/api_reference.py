"""The reference of the management API: its OpenAPI document by group, with a curl command for each operation."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.utils.text import slugify

from storage.api import documentation, problems

Schema = Mapping[str, Any]
_PLACES: Final = ("path", "query", "header")
_METHODS: Final = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a body, or a parameter. Dots in ``name`` lead to nested fields."""

    name: str
    type: str
    is_required: bool
    told: str
    place: str = ""  # of a parameter: path, query, header


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    told: str
    members: Sequence[Member]

    @property
    def is_problem(self) -> bool:
        return self.status >= "400"


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    method: str
    path: str
    summary: str
    description: str
    scope: str
    role: str
    parameters: Sequence[Member]
    body: Sequence[Member]
    example: str  # JSON
    answers: Sequence[Answer]
    curl: str

    @property
    def kind(self) -> str:
        """The color of the method's badge."""
        return {"GET": "info", "DELETE": "danger"}.get(self.method, "accent")

    @property
    def good(self) -> Sequence[Answer]:
        return [answer for answer in self.answers if not answer.is_problem]

    @property
    def bad(self) -> Sequence[Answer]:
        return [answer for answer in self.answers if answer.is_problem]


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    operations: Sequence[Operation]

    @property
    def slug(self) -> str:
        return slugify(self.name)


@cache
def groups() -> Sequence[Group]:
    document = documentation.document()
    found: dict[str, list[Operation]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                one = methods[method]
                found[one["tags"][0]].append(_Reader(document).operation(method, path, one))
    return [Group(name, operations) for name, operations in found.items()]


def kinds() -> Sequence[problems.ProblemType]:
    return problems.PROBLEM_TYPES


class _Reader:
    def __init__(self, document: Schema) -> None:
        self._components: Schema = document["components"]["schemas"]

    def operation(self, method: str, path: str, one: Schema) -> Operation:
        body, example = self._body(one)
        return Operation(
            one["operationId"],
            method.upper(),
            path,
            one["summary"],
            one.get("description", ""),
            one["x-scope"],
            one["x-role"],
            sorted(map(self._parameter, one.get("parameters", ())), key=lambda it: _PLACES.index(it.place)),
            body,
            json.dumps(example, indent=2, ensure_ascii=False) if example else "",
            [self._answer(status, answer) for status, answer in one["responses"].items()],
            curl(method.upper(), path, example),
        )

    def _body(self, one: Schema) -> tuple[Sequence[Member], Any]:
        content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
        if not content:
            return (), None
        examples = list(content.get("examples", {}).values())
        return list(self._members(content["schema"])), examples[0]["value"] if examples else None

    def _parameter(self, parameter: Schema) -> Member:
        return Member(
            parameter["name"],
            self._type(parameter["schema"]),
            parameter.get("required", False),
            parameter.get("description", ""),
            parameter["in"],
        )

    def _answer(self, status: str, answer: Schema) -> Answer:
        content = answer.get("content", {}).get("application/json", {})
        members = list(self._members(content["schema"])) if content else []
        return Answer(status, answer.get("description", ""), members)

    def _members(self, given: Schema, prefix: str = "") -> Iterator[Member]:
        found = self._resolved(given)
        if found.get("type") == "array":
            yield from self._members(found["items"], prefix)
            return
        for name, inner in found.get("properties", {}).items():
            required = name in found.get("required", ())
            yield Member(
                f"{prefix}{name}", self._type(inner), required, self._resolved(inner).get("description", "")
            )
            within = "[]." if self._resolved(inner).get("type") == "array" else "."
            yield from self._members(inner, f"{prefix}{name}{within}")

    def _resolved(self, given: Schema) -> Schema:
        """Follow references; members beside a reference take precedence."""
        beside = {name: value for name, value in given.items() if name not in {"$ref", "allOf"}}
        if "allOf" in given:
            return {**self._resolved(given["allOf"][0]), **beside}
        if "$ref" in given:
            return {**self._components[given["$ref"].rpartition("/")[2]], **beside}
        return given

    def _type(self, given: Schema) -> str:
        found = self._resolved(given)
        if "enum" in found:
            return " | ".join(str(value) for value in found["enum"] if value not in ("", None))
        if found.get("type") == "array":
            return f"[{self._type(found['items'])}]"
        name = {"date-time": "time", "uri": "address"}.get(found.get("format", ""), found.get("type", "any"))
        return f"{name} | null" if found.get("nullable") else str(name)


def curl(method: str, path: str, example: Any) -> str:
    """Write a command to paste; parts in braces are to be filled in."""
    lines = ['curl -H "Authorization: Bearer $TABLERO_TOKEN"']
    if method != "GET":
        lines[0] += f" -X {method}"
    if example is not None:
        data = shlex.quote(json.dumps(example, ensure_ascii=False))
        lines.append(f'  -H "Content-Type: application/json" -d {data}')
    lines.append(f'  "$TABLERO_URL{path}"')
    return " \\\n".join(lines)
