"""The Table service's REST protocol: HTTP to domain values and back. Knows no SQL and no ORM."""
