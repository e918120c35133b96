"""The benchmark: the product against Azurite and raw PostgreSQL, on the same machine, in alternation.
`python3 -m tests.tools.bench` prints the report; `--help` lists what can be left out."""
