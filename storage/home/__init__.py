"""Home page: accounts, recent visits, and the search."""
