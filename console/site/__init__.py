"""The ground of the console: layout, permissions, notices, appearance, errors, health and static files."""
