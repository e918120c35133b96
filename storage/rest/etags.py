"""ETags of resources that clients replace as a whole, and the If-Match header with the version a client saw."""

import hashlib
from typing import Any

import orjson
from rest_framework.request import Request

from storage.rest import problems
from storage.rest.problems import Problem


def compute(content: Any) -> str:
    """Return the ETag of serialized content: the same content has the same ETag."""
    return f'"{hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]}"'


def check_match(request: Request, content: Any) -> bool:
    """Return whether the request has a condition; raise a Problem when the content does not fulfil it."""
    condition = request.headers.get("If-Match", "").strip()
    if condition in {"", "*"}:
        return False
    # compressing an answer makes its ETag weak, and it still names the content
    if compute(content) not in (tag.strip().removeprefix("W/") for tag in condition.split(",")):
        raise Problem(problems.PRECONDITION)
    return True
