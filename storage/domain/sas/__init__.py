"""Shared access signatures: fields of a token, string to sign, and the granted permissions.

https://learn.microsoft.com/rest/api/storageservices/create-service-sas
https://learn.microsoft.com/rest/api/storageservices/create-account-sas
"""

from storage.domain.sas.signing import (
    find_key_by_fingerprint,
    find_signing_key,
    policy_not_found,
    sign,
    signature_blocked,
    signature_mismatch,
    string_to_sign,
)
from storage.domain.sas.terms import (
    authorize,
    check_kind,
    combine_terms,
    derive_grant,
    fields_set_by,
    key_range,
    validity_period,
)
from storage.domain.sas.tokens import (
    SAS_NAMES,
    AccountSas,
    TableSas,
    check,
    fingerprint,
    from_parameters,
    is_well_formed,
    read,
    to_parameters,
    write,
)

__all__ = [
    "SAS_NAMES",
    "AccountSas",
    "TableSas",
    "authorize",
    "check",
    "check_kind",
    "combine_terms",
    "derive_grant",
    "fields_set_by",
    "find_key_by_fingerprint",
    "find_signing_key",
    "fingerprint",
    "from_parameters",
    "is_well_formed",
    "key_range",
    "policy_not_found",
    "read",
    "sign",
    "signature_blocked",
    "signature_mismatch",
    "string_to_sign",
    "to_parameters",
    "validity_period",
    "write",
]
