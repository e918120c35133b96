"""The editor of the stored access policies of a table."""
