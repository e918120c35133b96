"""Commands for the operator of the server."""
