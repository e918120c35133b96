"""Scalability targets of Azure Table storage, in entities of 1 KiB a second.

https://learn.microsoft.com/azure/storage/tables/scalability-targets
"""

from typing import Final

PARTITION_TARGET: Final = 2_000
ACCOUNT_TARGET: Final = 20_000
