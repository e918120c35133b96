"""ETags of resources that clients replace as a whole, and If-Match."""

import hashlib
from typing import Any

import orjson
from rest_framework.request import Request

from storage.rest import problems
from storage.rest.problems import Problem


def compute(content: Any) -> str:
    """Return the ETag of serialized content, equal for equal content."""
    return f'"{hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]}"'


def check_match(request: Request, content: Any) -> bool:
    """Check If-Match against the content; return whether it was sent, raise a Problem on mismatch."""
    condition = request.headers.get("If-Match", "").strip()
    if condition in {"", "*"}:
        return False
    # compressing an answer makes its ETag weak, and it still names the content
    if compute(content) not in (tag.strip().removeprefix("W/") for tag in condition.split(",")):
        raise Problem(problems.PRECONDITION)
    return True
