"""Checks of the rules that Azure Table storage holds clients to and a friendly account does not.

As strict as Azure, an account refuses a request that breaks one; a friendly one serves it and notes the rule for the
request log. Accounts compatible with Cosmos DB have no such rules.
"""

import re
from typing import Final

from storage.domain.errors import InvalidInput, PartKind, StorageError
from storage.domain.filters.ast import COMPARISONS_ON_AZURE, Filter, count_comparisons
from storage.domain.filters.lexer import Token, TokenKind, tokenize
from storage.domain.filters.literals import read_int64
from storage.domain.requests.routes import BAD_PREDICATE, predicate_of
from storage.domain.requests.strictness import StrictRule, refuse
from storage.domain.values.edm import INT32
from storage.protocol.call import Call
from storage.protocol.negotiation import FIRST_WITHOUT_ATOM

# digits that may be beyond Int32, but not those at the beginning or in the middle of a text
_LONG_NUMBER: Final = re.compile(r"(?<![^\s(-])[0-9]{10}")
# the tokens of a key in an address, as the service's library reads it
_KEY_TOKENS: Final = re.compile(r"(?:\s++|[=,]|'(?:[^']++|'')*+'|[^\W\d]\w*+|-?\d++)*+")


def check_content_type(call: Call) -> None:
    """Check that a request with a table or an entity names the format of its body."""
    if b"content-type" not in call.request.headers:
        _hold(call, StrictRule.MISSING_CONTENT_TYPE, PartKind.HEADER, "Content-Type")


def check_accept(call: Call) -> None:
    """Check that a read names the format of its answer; a part of a batch has a default."""
    request = call.request
    if (
        b"accept" not in request.headers
        and request.version >= FIRST_WITHOUT_ATOM
        and not request.options.get("$format")
    ):
        _hold(call, StrictRule.MISSING_ACCEPT, PartKind.HEADER, "Accept")


def check_query(call: Call, root: Filter | None) -> None:
    """Check the options of a query, given its parsed filter."""
    options = call.request.options
    if root is not None:
        text = options["$filter"]
        # most filters are short: looking for digits and words in them is faster than walking their trees
        if _LONG_NUMBER.search(text):
            _check_numbers(call, text)
        if (
            text.count("and") + text.count("or") >= COMPARISONS_ON_AZURE
            and count_comparisons(root) > COMPARISONS_ON_AZURE
        ):
            _hold(call, StrictRule.TOO_MANY_COMPARISONS, PartKind.OPTION, "$filter")
    if options.get("NextRowKey") == "" and options.get("NextPartitionKey"):
        _hold(call, StrictRule.EMPTY_NEXT_ROW_KEY, PartKind.OPTION, "NextRowKey")


async def check_deletion(call: Call, name: str) -> None:
    """Check that no table of the name of a new one is being deleted."""
    if not call.dialect.is_cosmos and await call.service.is_being_deleted(call.account, name):
        _hold(call, StrictRule.TABLE_BEING_DELETED, PartKind.BODY)


def _check_numbers(call: Call, text: str) -> None:
    for token in tokenize(text):
        if token.kind is TokenKind.NUMBER and _is_beyond_int32(token):
            values = (token.text, token.start, text)
            span = (token.start, token.end)
            _hold(call, StrictRule.INT32_LITERAL, PartKind.OPTION, "$filter", values, span)
            return


def _is_beyond_int32(token: Token) -> bool:
    """Return whether a number is an integer without a suffix that Int32 does not hold."""
    number = read_int64(token.text)
    return number is not None and number not in INT32


def reword(call: Call, target: bytes, error: StorageError) -> StorageError:
    """Return the error of a part of a batch, in Azure's words if its address contains a key that is not valid."""
    if not call.account.strict or call.dialect.is_cosmos:
        return error
    predicate = predicate_of(target)
    if predicate is None:
        return error
    if "/" in predicate:
        return _like(error, refuse(StrictRule.SLASH_IN_KEY))
    if isinstance(error, InvalidInput) and error.text == BAD_PREDICATE:
        read = _KEY_TOKENS.match(predicate)
        end = read.end() if read is not None else 0
        # no answer to a text without an end is known
        if end < len(predicate) and predicate[end] != "'":
            return _like(error, refuse(StrictRule.QUOTE_IN_KEY, predicate[end], end, predicate))
    return error


def _like(error: StorageError, reworded: StorageError) -> StorageError:
    """Return an error about the same part of the request as another."""
    return reworded if error.part is None else reworded.within(*error.part)


def _hold(
    call: Call,
    rule: StrictRule,
    kind: PartKind,
    name: str = "",
    values: tuple[object, ...] = (),
    span: tuple[int, int] | None = None,
) -> None:
    """Refuse a request that breaks a rule, or note the rule in a friendly account."""
    if call.dialect.is_cosmos:
        return
    if not call.account.strict:
        if rule not in call.observed.warnings:
            call.observed.warnings += (rule,)
        return
    error = refuse(rule, *values).within(kind, name)
    raise error if span is None else error.at(*span)
