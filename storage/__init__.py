"""The Table service over PostgreSQL: three doors over one set of operations (see each package)."""
