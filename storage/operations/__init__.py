"""The operations of the service for all its interfaces. They own transactions and know nothing of HTTP."""
