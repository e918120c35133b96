"""Rules of Azure Table storage that a friendly account does not hold clients to, each with its source.

An account is friendly, or as strict as Azure: then a request that breaks a rule is refused with the code and message of
the service. Only rules with a source are in the list: an observed answer, or a statement of the documentation.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from storage.domain import errors
from storage.domain.errors import StorageError
from storage.domain.translation import mark as _


class Strictness(StrEnum):
    """Strictness of an account; the values are stored."""

    FRIENDLY = "friendly"
    AZURE = "azure"


class Evidence(StrEnum):
    """Evidence that Azure refuses a request."""

    OBSERVED = "observed"  # an answer of the service was published
    DOCUMENTED = "documented"  # Microsoft's documentation rules it out


class StrictRule(StrEnum):
    """Rule by its name, which is stored in the request log."""

    MISSING_CONTENT_TYPE = "missing_content_type"
    MISSING_ACCEPT = "missing_accept"
    INT32_LITERAL = "int32_literal"
    TOO_MANY_COMPARISONS = "too_many_comparisons"
    EMPTY_NEXT_ROW_KEY = "empty_next_row_key"
    TABLE_BEING_DELETED = "table_being_deleted"
    SLASH_IN_KEY = "slash_in_key"
    QUOTE_IN_KEY = "quote_in_key"


class RuleFacts(NamedTuple):
    """Facts about a rule: Azure's error, a sentence for people, and where the answer is known from."""

    error: type[StorageError]
    message: str  # with placeholders of the library's texts, which number them
    sentence: str
    evidence: Evidence
    sources: tuple[str, ...]
    is_only_wording: bool = False  # friendly accounts refuse it too, with another message

    @property
    def source(self) -> str:
        return self.sources[0]


TABLE_DELETION: Final = 40.0  # seconds that the deletion of a table takes on Azure at least

_REST: Final = "https://learn.microsoft.com/rest/api/storageservices/"
_GITHUB: Final = "https://github.com/"

RULES: Final[Mapping[StrictRule, RuleFacts]] = {
    StrictRule.MISSING_CONTENT_TYPE: RuleFacts(
        errors.InvalidInput,
        "Content-Type header value missing.",
        _("A request that sends a table or an entity needs the header Content-Type."),
        Evidence.OBSERVED,
        (
            f"{_GITHUB}Azure/azure-sdk-for-net/issues/35185",
            f"{_REST}payload-format-for-table-service-operations",
        ),
    ),
    # without Accept the format is Atom, which versions since 2015-12-11 do not have
    StrictRule.MISSING_ACCEPT: RuleFacts(
        errors.AtomFormatNotSupported,
        errors.AtomFormatNotSupported.message,
        _("A read without the header Accept asks for Atom, which versions since 2015-12-11 do not support."),
        Evidence.DOCUMENTED,
        (f"{_REST}payload-format-for-table-service-operations",),
    ),
    # both reports end after the literal; the rest is the text of the service's OData library
    StrictRule.INT32_LITERAL: RuleFacts(
        errors.InvalidInput,
        "Unrecognized 'Edm.Int32' literal '{0}' at '{1}' in '{2}'.",
        _("In a filter, an integer beyond 32 bits needs the suffix L."),
        Evidence.OBSERVED,
        (
            f"{_GITHUB}Azure/azure-storage-node/issues/316",
            f"{_GITHUB}microsoft/AzureStorageExplorer/issues/1382",
        ),
    ),
    # no answer is published: the standard message of the code
    StrictRule.TOO_MANY_COMPARISONS: RuleFacts(
        errors.InvalidInput,
        errors.InvalidInput.message,
        _("A filter may contain at most 15 comparisons."),
        Evidence.DOCUMENTED,
        (f"{_REST}querying-tables-and-entities#supported-query-options",),
    ),
    StrictRule.EMPTY_NEXT_ROW_KEY: RuleFacts(
        errors.InvalidInput,
        errors.InvalidInput.message,
        _("NextRowKey must not be empty: leave it out if the answer had none."),
        Evidence.OBSERVED,
        (
            f"{_GITHUB}Azure/azure-sdk-for-js/issues/20913",
            f"{_GITHUB}microsoft/AzureStorageExplorer/issues/5434",
        ),
    ),
    StrictRule.TABLE_BEING_DELETED: RuleFacts(
        errors.TableBeingDeleted,
        errors.TableBeingDeleted.message,
        _("A table cannot be created in the 40 seconds after another one of its name was deleted."),
        Evidence.OBSERVED,
        (
            f"{_REST}delete-table#remarks",
            f"{_GITHUB}microsoft/AzureStorageExplorer/issues/351",
            f"{_GITHUB}Azure/azure-sdk-for-go/issues/10813",
        ),
    ),
    StrictRule.SLASH_IN_KEY: RuleFacts(
        errors.InvalidInput,
        "Bad Request - Error in query syntax.",
        _("A slash in a key in the address of a batch operation is a syntax error."),
        Evidence.OBSERVED,
        (
            f"{_GITHUB}Azure/azure-storage-net/issues/386",
            f"{_GITHUB}Azure/azure-cosmos-table-dotnet/issues/64",
        ),
        is_only_wording=True,
    ),
    StrictRule.QUOTE_IN_KEY: RuleFacts(
        errors.InvalidInput,
        "Syntax error: character '{0}' is not valid at position {1} in '{2}'.",
        _("A quotation mark in a key in the address of a batch operation must be doubled."),
        Evidence.OBSERVED,
        (f"{_GITHUB}Azure/azure-sdk-for-python/issues/20301",),
        is_only_wording=True,
    ),
}


def refuse(rule: StrictRule, *values: object) -> StorageError:
    """Return Azure's error for a broken rule; the values fill the placeholders of its message."""
    facts = RULES[rule]
    error = facts.error(facts.message.format(*values) if values else facts.message)
    error.rule = rule
    return error
