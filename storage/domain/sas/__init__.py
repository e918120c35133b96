"""Shared access signatures: what a token says, the text that is signed, and what it grants.

https://learn.microsoft.com/rest/api/storageservices/create-service-sas
https://learn.microsoft.com/rest/api/storageservices/create-account-sas
"""

from storage.domain.sas.signing import sign, signed_by, string_to_sign
from storage.domain.sas.terms import effective, grant, key_range
from storage.domain.sas.tokens import (
    SAS_NAMES,
    AccountSas,
    TableSas,
    check,
    fingerprint,
    parameters,
    read,
    write,
)

__all__ = [
    "SAS_NAMES",
    "AccountSas",
    "TableSas",
    "check",
    "effective",
    "fingerprint",
    "grant",
    "key_range",
    "parameters",
    "read",
    "sign",
    "signed_by",
    "string_to_sign",
    "write",
]
