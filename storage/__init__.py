"""Azure Table service on PostgreSQL: protocol, management API and console on shared operations (see each package)."""
