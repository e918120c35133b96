"""Access: SAS tokens, and the stored access policies of a table."""
