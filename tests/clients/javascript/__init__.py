"""`@azure/data-tables` on Node."""
