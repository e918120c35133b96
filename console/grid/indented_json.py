"""JSON that is kept in a text, as people read it: a line for each member, and every token as it is written."""

import json
import re
from typing import Final

LONGEST_INDENT: Final = 256 * 1024  # characters, of all lines
_PIECE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_OPENING: Final = ("{", "[")
_CLOSING: Final = ("}", "]")


def indented(text: str) -> str:
    """Nothing for what is no object or array, or is nested so deeply that its lines would be mostly spaces."""
    if text[:1] not in _OPENING or not _is_json(text):
        return ""
    written: list[str] = []
    depth = size = 0
    for piece in _PIECE.findall(text):
        if piece in _CLOSING:
            depth -= 1
        if written and _breaks(written[-1], piece):
            written.append("\n" + "  " * depth)
            size += 2 * depth
            if size > LONGEST_INDENT:
                return ""
        written.append(piece)
        if piece in _OPENING:
            depth += 1
        elif piece == ":":
            written.append(" ")
    return "".join(written)


def _breaks(last: str, piece: str) -> bool:
    """Whether a line ends between them; an empty object stays together."""
    if last in _OPENING:
        return piece not in _CLOSING
    return last == "," or piece in _CLOSING


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
