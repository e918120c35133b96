"""The management API, by the requests that scripts make."""
