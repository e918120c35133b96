"""`azure-data-tables`, the synchronous and the asynchronous library."""
