"""Short links to the addresses of pages, kept as long as they are used."""
