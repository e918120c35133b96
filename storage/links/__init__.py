"""Short links to pages."""
