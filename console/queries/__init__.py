"""What is asked of a table: filters as text, rows and code, and those that are kept."""
