"""Server start: options, the embedded PostgreSQL, migrations, sockets and workers."""
