"""From a command line to a running server: options, the embedded PostgreSQL, migrations, sockets, workers.

Stands on top of everything else; only console.settings reads its options.
"""
