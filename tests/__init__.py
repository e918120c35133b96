"""Everything that is checked; `python3 manage.py test` runs it. Folders mirror the layers."""
