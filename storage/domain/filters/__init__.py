"""``$filter``: syntax tree, parser, writer, and the key range to scan."""
