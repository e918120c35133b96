"""The request log: what is kept of requests to the Table service, and why they were refused."""
