"""The base of all subjects: layout, permissions, notices, appearance, errors, health and static files."""
