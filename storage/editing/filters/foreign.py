"""Signs and words of other languages in a filter: =, &&, "text", AND. They are repaired all at once."""

import re
from collections.abc import Iterator
from typing import Final

from storage.editing.filters.mending import Fix, Patient, Repair, quoted

_FOREIGN = re.compile(
    r"""'[^']*(?:''[^']*)*'?
    | (?P<double>"(?:[^"\\]|\\.)*" | [\u201c\u201d][^\u201c\u201d]*[\u201c\u201d]
                | [\u2018\u2019][^\u2018\u2019]*[\u2018\u2019])
    | (?P<sign>===? | == | = | !== | != | <> | <= | >= | < | > | && | & | \|\| | \| | !)
    | (?P<word>(?<!\w)(?:AND|OR|NOT|EQ|NE|GT|GE|LT|LE)(?!\w))""",
    re.VERBOSE | re.IGNORECASE,
)
_SIGNS: Final = {
    **dict.fromkeys(("=", "==", "==="), "eq"),
    **dict.fromkeys(("!=", "!==", "<>"), "ne"),
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "!": "not",
    **dict.fromkeys(("&", "&&"), "and"),
    **dict.fromkeys(("|", "||"), "or"),
}


def signs(patient: Patient) -> Iterator[Repair]:
    wrong = [found for found in _FOREIGN.finditer(patient.text) if _native(found) != found[0]]
    token = patient.tokens[patient.at]
    near = (token.start, patient.tokens[max(0, patient.at - 1)].start)
    if not any(found.start() <= start < found.end() for found in wrong for start in near):
        return
    start, end = wrong[0].start(), wrong[-1].end()
    replaced, position = "", start
    for found in wrong:
        replaced += patient.text[position : found.start()] + _spaced(patient.text, found, _native(found))
        position = found.end()
    yield Repair(start, end, replaced, Fix.FOREIGN_SIGN)


def _native(found: re.Match[str]) -> str:
    if found["double"]:
        return quoted(re.sub(r'\\(["\\])', r"\1", found[0][1:-1]))
    if found["sign"]:
        return _SIGNS[found[0]]
    return found[0].lower() if found["word"] else found[0]


def _spaced(text: str, found: re.Match[str], native: str) -> str:
    before, after = text[: found.start()][-1:], text[found.end() :][:1]
    left = " " if before and before not in " \t\r\n(" else ""
    right = " " if after and after not in " \t\r\n)," else ""
    return f"{left}{native}{right}"
