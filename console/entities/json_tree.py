"""JSON tree for display, lossless and limited in size."""

import json
import re
from dataclasses import dataclass
from typing import Final, cast

DEEPEST: Final = 20  # displayed levels
MOST: Final = 2_000  # displayed values


@dataclass(frozen=True, slots=True)
class Node:
    """JSON node: a container with members, or a scalar with its JSON text."""

    name: str
    path: str  # as JSONPath
    text: str
    kind: str  # object, array, string, number, word
    members: tuple["Node", ...] = ()
    is_cut: bool = False


def read(text: str) -> object:
    """Parse an object to a tuple of pairs, or a list; None for anything else."""
    return _load(text) if text.lstrip()[:1] in ("{", "[") else None


def tree(name: str, found: object) -> Node:
    return _node(name, "$", found, [MOST], 0)


@dataclass(frozen=True, slots=True)
class _Number:
    """JSON number as written, with all digits."""

    text: str


def _load(text: str) -> object:
    try:
        return cast(
            "object",
            json.loads(text, parse_int=_Number, parse_float=_Number, object_pairs_hook=tuple),
        )
    except (ValueError, RecursionError):
        return None


def _node(name: str, path: str, value: object, budget: list[int], depth: int) -> Node:
    budget[0] -= 1
    match value:
        case tuple():
            pairs = [(_escaped(key), f"{path}{_step(key)}", member) for key, member in value]
            return _container(name, path, "object", pairs, budget, depth)
        case list():
            pairs = [(str(index), f"{path}[{index}]", member) for index, member in enumerate(value)]
            return _container(name, path, "array", pairs, budget, depth)
        case _Number(text):
            return Node(name, path, text, "number")
        case str():
            return Node(name, path, _quoted(value), "string")
    return Node(name, path, json.dumps(value), "word")


def _container(
    name: str, path: str, kind: str, pairs: list[tuple[str, str, object]], budget: list[int], depth: int
) -> Node:
    members = []
    for key, step, member in pairs:
        if budget[0] <= 0 or depth >= DEEPEST:
            break
        members.append(_node(key, step, member, budget, depth + 1))
    return Node(name, path, str(len(pairs)), kind, tuple(members), is_cut=len(members) < len(pairs))


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _step(key: str) -> str:
    return f".{key}" if _NAME.fullmatch(key) else f"[{_quoted(key)}]"


_HALF = re.compile("[\ud800-\udfff]")  # surrogates: valid in JSON, but not in HTML


def _quoted(text: str) -> str:
    return _escaped(json.dumps(text, ensure_ascii=False))


def _escaped(text: str) -> str:
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
