"""Short links to pages, kept as long as they are used."""
