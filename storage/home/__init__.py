"""The first page: accounts, what one visited last, and the search."""
