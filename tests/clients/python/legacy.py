"""The previous SDK: `azure-cosmosdb-table`, imported without its warnings.

It compares with `is` in one place; Python warns about it when it compiles the module.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from azure.common import AzureConflictHttpError, AzureHttpError, AzureMissingResourceHttpError
    from azure.cosmosdb.table import (
        AzureBatchOperationError,
        EdmType,
        Entity,
        EntityProperty,
        TableBatch,
        TablePayloadFormat,
        TablePermissions,
        TableService,
    )
    from azure.cosmosdb.table.common.models import (
        AccessPolicy,
        AccountPermissions,
        CorsRule,
        Logging,
        Metrics,
        ResourceTypes,
        RetentionPolicy,
    )
    from azure.cosmosdb.table.common.retry import no_retry
    from azure.cosmosdb.table.common.sharedaccesssignature import SharedAccessSignature
    from azure.cosmosdb.table.sharedaccesssignature import TableSharedAccessSignature

__all__ = [
    "AccessPolicy",
    "AccountPermissions",
    "AzureBatchOperationError",
    "AzureConflictHttpError",
    "AzureHttpError",
    "AzureMissingResourceHttpError",
    "CorsRule",
    "EdmType",
    "Entity",
    "EntityProperty",
    "Logging",
    "Metrics",
    "ResourceTypes",
    "RetentionPolicy",
    "SharedAccessSignature",
    "TableBatch",
    "TablePayloadFormat",
    "TablePermissions",
    "TableService",
    "TableSharedAccessSignature",
    "no_retry",
]
