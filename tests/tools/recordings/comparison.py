"""Comparison of a recorded answer with a current one, after necessary differences are replaced on both sides."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from .reading import Exchange, Message, rewrite_json

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Difference:
    kind: str
    recorded: str
    answered: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One side of a comparison; ``names`` are texts that stand for a placeholder, the longest first."""

    status: int
    reason: str | None
    message: Message
    names: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Rule:
    where: str
    pattern: re.Pattern[str]
    replacement: str


@dataclass(frozen=True, slots=True)
class Known:
    """A difference that is meant, and why; a field that is left out fits everything."""

    kind: re.Pattern[str]
    recording: re.Pattern[str]
    request: re.Pattern[str]
    status: re.Pattern[str]
    recorded: re.Pattern[str]
    answered: re.Pattern[str]
    before: date
    reason: str

    def fits(self, recording: str, exchange: Exchange, difference: Difference) -> bool:
        return bool(
            self.kind.fullmatch(difference.kind)
            and exchange.moment.date() < self.before
            and self.recording.search(recording)
            and self.request.search(f"{exchange.method} {exchange.url}")
            and self.status.search(str(exchange.status))
            and self.recorded.search(difference.recorded)
            and self.answered.search(difference.answered)
        )


class Rules:
    def __init__(self, path: Path = _FOLDER / "rules.toml") -> None:
        document = tomllib.loads(path.read_text())
        self._rules = [_Rule(it["where"], re.compile(it["pattern"]), it["with"]) for it in document["rule"]]
        self._left_out = set(document["headers"]["left_out"])

    def compare(self, recorded: Answer, answered: Answer) -> Iterator[Difference]:
        if recorded.status != answered.status:
            yield Difference("status", str(recorded.status), str(answered.status))
        elif recorded.reason is not None and recorded.reason != answered.reason:
            yield Difference("reason phrase", recorded.reason, answered.reason or "")
        first, second = self._headers(recorded), self._headers(answered)
        for name in sorted(first.keys() | second.keys()):
            if first.get(name) != second.get(name):
                how = "missing" if name not in second else "added" if name not in first else "value"
                yield Difference(f"header {name}: {how}", first.get(name, "-"), second.get(name, "-"))
        theirs, ours = self._body(recorded), self._body(answered)
        if recorded.message.parsed:
            theirs, ours = (rewrite_json(it.encode()).decode() for it in (theirs, ours))
        if theirs != ours:
            yield Difference(f"body: {_describe(theirs, ours)}", theirs, ours)

    def _headers(self, answer: Answer) -> dict[str, str]:
        names = {name.lower() for name, _ in answer.message.headers} - self._left_out
        return {name: self._replace(name, answer.message.header(name) or "", answer.names) for name in names}

    def _body(self, answer: Answer) -> str:
        return self._replace("body", answer.message.body.decode("utf-8", "backslashreplace"), answer.names)

    def _replace(self, where: str, text: str, names: list[tuple[str, str]]) -> str:
        for name, placeholder in names:
            text = text.replace(name, placeholder)
        for rule in self._rules:
            if rule.where in (where, "any"):
                text = rule.pattern.sub(rule.replacement, text)
        return text


_ANYTHING = {"kind": ".*", "recording": "", "request": "", "status": "", "recorded": "", "answered": ""}


def read_known(path: Path = _FOLDER / "known.toml") -> list[Known]:
    return [
        Known(
            **{field: re.compile(entry.get(field, _ANYTHING[field]), re.DOTALL) for field in _ANYTHING},
            before=entry.get("before", date.max),
            reason=entry["reason"],
        )
        for entry in tomllib.loads(path.read_text()).get("known", [])
    ]


def _describe(recorded: str, answered: str) -> str:
    """Describe the difference of two bodies in a word."""
    if not recorded or not answered:
        return "missing" if recorded else "added"
    if recorded.startswith("--batchresponse"):
        return "of a batch"
    try:
        first, second = json.loads(recorded), json.loads(answered)
    except ValueError:
        return "text"
    if _is_error(first) or _is_error(second):
        return "of an error"
    if first == second:
        if sorted(recorded) != sorted(answered):
            return "spelling"
        return "place of keys" if _without_keys(first) == _without_keys(second) else "order of members"
    return "members" if _paths(first) != _paths(second) else "values"


def _without_keys(value: Any) -> str:
    """JSON, its members in order, without the keys of entities."""
    match value:
        case dict():
            items = [(name, item) for name, item in value.items() if name not in ("PartitionKey", "RowKey")]
            return str([(name, _without_keys(item)) for name, item in items])
        case list():
            return str([_without_keys(item) for item in value])
        case _:
            return repr(value)


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and "odata.error" in value


def _paths(value: Any, path: str = "") -> set[str]:
    match value:
        case dict():
            return {it for name, item in value.items() for it in _paths(item, f"{path}/{name}")}
        case list():
            return {it for index, item in enumerate(value) for it in _paths(item, f"{path}/{index}")}
        case _:
            return {path}
