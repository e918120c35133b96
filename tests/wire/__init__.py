"""The protocol as data: every TOML file here holds cases of one operation or topic (see README.md);
test_wire sends them to a server of ours, or to TABLE_ENDPOINT."""
