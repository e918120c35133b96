"""REST protocol of the Table service over HTTP: parsing of requests and serialization of responses."""
