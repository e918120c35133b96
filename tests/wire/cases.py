"""Reads the cases of tests/wire/*.toml; README.md beside them explains the notation."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

FOLDER = Path(__file__).parent
ROW = ("name", "request", "response", "peer")
FILTER_KEYS = {"filter", "rows", "error", "message"}
CASE_KEYS = {
    "name",
    "each",
    "given",
    "request",
    "response",
    "steps",
    "peer",
    "local",
    "read_only",
    "kind",
    "strict",
} | FILTER_KEYS

REPEATED = re.compile(r"\{([^{}*]+)\*(\d+)\}")
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)(\|quote)?\}")


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    test: str  # the same for all variants of one `each`
    given: list[Any]
    steps: list[dict[str, Any]]
    variables: dict[str, str]
    peer: str
    local: str  # why it needs tables on one server
    read_only: bool
    kind: str  # the kind of the account
    strict: bool  # whether the account is as strict as Azure

    def mentions(self, placeholder: str) -> bool:
        return f"{{{placeholder}}}" in json.dumps([self.given, self.steps, self.variables])

    @property
    def world(self) -> str:
        """Return the given state as text, which is the same for cases with the same state."""
        given = json.dumps(self.given)
        return json.dumps([given, self.variables]) if PLACEHOLDER.search(given) else given

    @property
    def changes_nothing(self) -> bool:
        """Return whether all its requests read or are refused, so that other cases can have its table as well."""
        return all(_changes_nothing(step) for step in self.steps)


def _changes_nothing(step: dict[str, Any]) -> bool:
    if step["request"].get("abort") or "x-tablero-rehearse" in step["request"].get("headers", {}):
        return False
    status = step["response"].get("status")
    return step["request"]["line"].startswith("GET ") or (isinstance(status, int) and status >= 400)


def load() -> list[Case]:
    return [case for path in sorted(FOLDER.glob("*.toml")) for case in _load_file(path)]


def load_tests() -> dict[str, list[Case]]:
    """Return the variants of each test by its name."""
    tests: dict[str, list[Case]] = {}
    for case in load():
        tests.setdefault(case.test, []).append(case)
    return tests


def _load_file(path: Path) -> Iterator[Case]:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    worlds = document.get("given", {})
    names = document.get("let", {})
    for entry in _entries(document):
        if unknown := entry.keys() - CASE_KEYS:
            raise ValueError(f"{path.name}: {entry['name']}: unknown keys {unknown}")
        kinds = ("storage", "cosmos") if entry.get("kind") == "both" else (entry.get("kind", "storage"),)
        strictnesses = (False, True) if "strict" in entry else (False,)
        for kind, strict, variables in product(kinds, strictnesses, _variants(entry)):
            given = entry.get("given", [])
            about = " (cosmos)" if len(kinds) > 1 and kind == "cosmos" else " (strict)" if strict else ""
            yield Case(
                test=f"{path.stem}: {entry['name']}{about}",
                id=f"{path.stem}: {_title(entry['name'], variables)}{about}",
                given=worlds[given] if isinstance(given, str) else given,
                steps=_strict_steps(entry) if strict else _steps(entry),
                variables={**names, **variables},
                peer="only Tablero can be strict" if strict else variables.get("peer", entry.get("peer", "")),
                local=variables.get("local", entry.get("local", "")),
                read_only=entry.get("read_only", False),
                kind=kind,
                strict=strict,
            )


def _entries(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every case with its name and the defaults of its file and its list."""
    defaults = document.get("defaults", {})
    for name, case in document.get("case", {}).items():
        yield {**defaults, "name": name, **case}
    for group in document.get("cases", []):
        shared = {**defaults, **group}
        for case in shared.pop("list"):
            yield {**shared, **(case if isinstance(case, dict) else dict(zip(ROW, case, strict=False)))}


def _variants(entry: dict[str, Any]) -> Iterator[dict[str, str]]:
    for variant in entry.get("each", [{}]):
        if isinstance(variant, str):
            yield {"each": variant}
            continue
        choices = [value if isinstance(value, list) else [value] for value in variant.values()]
        for values in product(*choices):
            yield dict(zip(variant, map(str, values), strict=True))


def _title(name: str, variables: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: variables.get(match[1], match[0]), name)


def _steps(entry: dict[str, Any]) -> list[dict[str, Any]]:
    if "steps" in entry:
        return [_step(request, response) for request, response in entry["steps"]]
    if "filter" in entry:
        return [_filter_step(entry)]
    return [_step(entry["request"], entry["response"])]


def _strict_steps(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps with the answer of a strict account to the last request."""
    *others, last = _steps(entry)
    return [*others, _step(last["request"], entry["strict"])]


def _step(request: str | dict[str, Any], response: int | dict[str, Any]) -> dict[str, Any]:
    return {
        "request": {"line": request} if isinstance(request, str) else request,
        "response": {"status": response} if isinstance(response, int) else response,
    }


def _filter_step(entry: dict[str, Any]) -> dict[str, Any]:
    request = {"line": "GET /{table}", "query": {"$filter": entry["filter"]}}
    if "rows" in entry:
        return {"request": request, "response": {"status": 200, "rows": entry["rows"]}}
    status = 501 if entry["error"] == "NotImplemented" else 400
    expected = {key: entry[key] for key in ("error", "message") if key in entry}
    return {"request": request, "response": {"status": status, **expected}}


def fill(value: Any, variables: Mapping[str, str]) -> Any:
    """Return the value with {name}, {name|quote} and {text*count} replaced in every string."""
    match value:
        case str():
            repeated = REPEATED.sub(lambda match: repeat(match[1], int(match[2])), value)
            return PLACEHOLDER.sub(lambda match: _variable(match, variables), repeated)
        case dict():
            return {fill(name, variables): fill(item, variables) for name, item in value.items()}
        case list():
            return [fill(item, variables) for item in value]
        case _:
            return value


def _variable(match: re.Match[str], variables: Mapping[str, str]) -> str:
    value: str = fill(variables[match[1]], variables)
    return quote(value, safe="") if match[2] else value


def repeat(text: str, count: int) -> str:
    """Return copies of the text, numbered in four digits where it has a `#`."""
    return (
        "".join(text.replace("#", f"{index:04}") for index in range(count)) if "#" in text else text * count
    )
