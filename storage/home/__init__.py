"""The first page: accounts, recent visits, and the search."""
