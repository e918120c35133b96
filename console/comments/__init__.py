"""Comments on entities, tables and saved queries."""
