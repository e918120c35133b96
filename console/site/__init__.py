"""Common base of all subjects' pages: layout, permissions, toasts, appearance, errors and static files."""
