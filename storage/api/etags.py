"""Conditions of requests that replace something: the ETag of what their sender saw."""

import hashlib
from typing import Any

import orjson
from rest_framework.request import Request

from storage.api import problems
from storage.api.problems import Problem


def of(content: Any) -> str:
    """The same for the same content, whoever asks and whenever."""
    return f'"{hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]}"'


def check(request: Request, content: Any) -> bool:
    """Whether there is a condition; raises when it is not fulfilled."""
    wanted = request.headers.get("If-Match", "").strip()
    if wanted in {"", "*"}:
        return False
    if of(content) not in (tag.strip() for tag in wanted.split(",")):
        raise Problem(problems.PRECONDITION)
    return True
