"""The promises of docs/reliability.md, the programs that prove them, and the record of each run.

A run is a line of runs.jsonl, which the programs append with `--record`. Long runs are made in pieces, on several days;
the page adds them up.
"""
