"""Short links to pages of accounts."""
