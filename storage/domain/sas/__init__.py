"""Shared access signatures: what a token says, the text that is signed, and what it grants.

https://learn.microsoft.com/rest/api/storageservices/create-service-sas
https://learn.microsoft.com/rest/api/storageservices/create-account-sas
"""

from storage.domain.sas.refusals import is_blocked, no_policy, not_signed
from storage.domain.sas.signing import recognize, sign, signed_by, string_to_sign
from storage.domain.sas.terms import effective, fixed_by, grant, granted, key_range, period
from storage.domain.sas.tokens import (
    SAS_NAMES,
    AccountSas,
    TableSas,
    check,
    fingerprint,
    is_well_formed,
    of_parameters,
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
    "fixed_by",
    "grant",
    "granted",
    "is_blocked",
    "is_well_formed",
    "key_range",
    "no_policy",
    "not_signed",
    "of_parameters",
    "parameters",
    "period",
    "read",
    "recognize",
    "sign",
    "signed_by",
    "string_to_sign",
    "write",
]
