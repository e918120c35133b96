"""The server's own modules. Only its processes have this folder on their path, so the names collide with nobody's."""
