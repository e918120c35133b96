"""Quick fixes for syntax of other languages, such as ``=``, ``&&``, ``like`` or ``startswith``."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from storage.domain.filters.ast import IS_SET, MatchKind
from storage.domain.filters.lexer import TokenKind
from storage.domain.refusals import Reason, Refusal
from storage.editing.filters.builder import prefix_end
from storage.editing.filters.context import DiagnosisContext, quote_text
from storage.editing.filters.diagnostics import Suggestion

_FOREIGN = re.compile(
    r"""'[^']*(?:''[^']*)*'?
    | (?P<double>"(?:[^"\\]|\\.)*" | [\u201c\u201d][^\u201c\u201d]*[\u201c\u201d]
                | [\u2018\u2019][^\u2018\u2019]*[\u2018\u2019])
    | (?P<sign>===? | == | = | !== | != | <> | <= | >= | < | > | && | & | \|\| | \| | !)
    | (?P<word>(?<!\w)(?:AND|OR|NOT|EQ|NE|GT|GE|LT|LE)(?!\w))""",
    re.VERBOSE | re.IGNORECASE,
)
_DOUBLE_QUOTES: Final = ('"', "\u201c", "\u201d", "\u2018", "\u2019")
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


def fix_signs(context: DiagnosisContext) -> Iterator[Suggestion]:
    wrong = [sign for sign in _FOREIGN.finditer(context.text) if _native(sign) != sign[0]]
    token = context.tokens[context.at]
    near = (token.start, context.tokens[max(0, context.at - 1)].start)
    if not any(sign.start() <= start < sign.end() for sign in wrong for start in near):
        return
    start, end = wrong[0].start(), wrong[-1].end()
    replaced, position = "", start
    for sign in wrong:
        replaced += context.text[position : sign.start()] + _spaced(context.text, sign, _native(sign))
        position = sign.end()
    is_quote = token.text[:1] in _DOUBLE_QUOTES
    refusal = Reason.FILTER_QUOTES.of() if is_quote else Reason.FILTER_SIGN.of()
    yield Suggestion(start, end, replaced, refusal)


def _native(match: re.Match[str]) -> str:
    if match["double"]:
        return quote_text(re.sub(r'\\(["\\])', r"\1", match[0][1:-1]))
    if match["sign"]:
        return _SIGNS[match[0]]
    return match[0].lower() if match["word"] else match[0]


def _spaced(text: str, found: re.Match[str], native: str) -> str:
    before, after = text[: found.start()][-1:], text[found.end() :][:1]
    left = " " if before and before not in " \t\r\n(" else ""
    right = " " if after and after not in " \t\r\n)," else ""
    return f"{left}{native}{right}"


_TEXT_FIRST: Final = [TokenKind.STRING, TokenKind.COMMA, TokenKind.NAME, TokenKind.CLOSE]
_NAME_FIRST: Final = [TokenKind.NAME, TokenKind.COMMA, TokenKind.STRING, TokenKind.CLOSE]
_FUNCTIONS: Final[Mapping[str, str]] = {
    "startswith": "startswith",
    "beginswith": "startswith",
    "begins_with": "startswith",
    "endswith": "endswith",
    "contains": "contains",
    "substringof": "contains",
}


def fix_functions(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Rewrite ``startswith(A, 'x')``, with arguments in either order, possibly followed by ``eq true``."""
    at = context.at
    function = _FUNCTIONS.get(context.name(at).lower())
    arguments = context.kinds(at + 2, 4)
    if function is None or arguments not in (_TEXT_FIRST, _NAME_FIRST):
        return
    name, text = (at + 2, at + 4) if arguments == _NAME_FIRST else (at + 4, at + 2)
    last, is_true = at + 5, True
    if context.name(last + 1) == "eq" and context.name(last + 2) in ("true", "false"):
        is_true = context.name(last + 2) == "true"
        last += 2
    rewritten = _call_condition(context.name(name), function, context.tokens[text].text)
    is_bound = context.name(at - 1) == "not"
    rewritten = rewritten if is_true else f"not ({rewritten})"
    refusal = Reason.FILTER_UNSUPPORTED.of(name=f"{context.name(at)}()")
    yield context.fix(at, last, f"({rewritten})" if is_bound else rewritten, refusal)


def _call_condition(name: str, function: str, literal: str) -> str:
    if function != "startswith":
        return f"{function}({name},{literal})"
    end = prefix_end(literal[1:-1].replace("''", "'"))
    return f"{name} ge {literal}" + ("" if end is None else f" and {name} lt {quote_text(end)}")


SQL_WORDS: Final = frozenset({"like", "between", "is", *_FUNCTIONS})


def fix_sql_operators(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Suggest filters for SQL conditions such as ``A like 'x%'``, ``A between 1 and 5`` or ``A in ('x', 'y')``."""
    at = context.at
    subject = context.name(at - 1)
    word = context.name(at).lower()
    if not subject:
        return
    refusal = Reason.FILTER_UNSUPPORTED.of(name=context.name(at))
    if word == "in" and context.kinds(at + 1, 1) == [TokenKind.OPEN]:
        yield from _list(context, subject, refusal)
    elif word == "like" and context.kinds(at + 1, 1) == [TokenKind.STRING]:
        yield context.fix(at - 1, at + 1, _like(subject, context.tokens[at + 1].text), refusal)
    elif word in _FUNCTIONS and context.kinds(at + 1, 1) == [TokenKind.STRING]:
        rewritten = _call_condition(subject, _FUNCTIONS[word], context.tokens[at + 1].text)
        yield context.fix(at - 1, at + 1, rewritten, refusal)
    elif word == "between" and context.name(at + 2).lower() == "and" and at + 3 < len(context.tokens) - 1:
        first, last = context.tokens[at + 1].text, context.tokens[at + 3].text
        yield context.fix(at - 1, at + 3, f"{subject} ge {first} and {subject} le {last}", refusal)
    elif word == "is":
        is_not = context.name(at + 1).lower() == "not"
        if context.name(at + 1 + is_not).lower() == "null":
            yield context.fix(at - 1, at + 1 + is_not, _null(subject, is_set=is_not), context.null_refusal)


def _list(context: DiagnosisContext, subject: str, refusal: Refusal) -> Iterator[Suggestion]:
    last = context.close(context.at + 1)
    if last is None:
        return
    inside = context.tokens[context.at + 2 : last]
    values = [token.text for token in inside if token.kind is not TokenKind.COMMA]
    if values and len(values) * 2 - 1 == len(inside):
        rewritten = " or ".join(f"{subject} eq {value}" for value in values)
        yield context.fix(
            context.at - 1,
            last,
            f"({rewritten})" if len(values) > 1 else rewritten,
            refusal,
        )


def _like(name: str, literal: str) -> str:
    pattern = literal[1:-1]
    text = f"'{pattern.strip('%')}'"
    match pattern.startswith("%"), pattern.endswith("%"):
        case True, True:
            return _call_condition(name, MatchKind.CONTAINS, text)
        case True, False:
            return _call_condition(name, MatchKind.ENDS_WITH, text)
        case False, True:
            return _call_condition(name, "startswith", text)
    return f"{name} eq {literal}"


def fix_null_comparisons(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Rewrite ``A eq null`` in either order."""
    for at in (context.at - 1, context.at + 1):
        sides = context.name(at - 1), context.name(at + 1)
        names = [side for side in sides if side.lower() != "null"]
        if context.name(at) in ("eq", "ne") and len(names) == 1 and names[0]:
            rewritten = _null(names[0], is_set=context.name(at) == "ne")
            yield context.fix(at - 1, at + 1, rewritten, context.null_refusal)


def _null(name: str, *, is_set: bool) -> str:
    return f"{IS_SET}({name})" if is_set else f"not {IS_SET}({name})"
