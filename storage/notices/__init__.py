"""Notices: what people should know of without looking for it.

Each subject declares its kinds in its ``subject.py``, with a function that finds the cases that there are now. One
process of all servers evaluates them once a minute (evaluation.py): what is found opens a notice, which stays until it
is no longer found, and is then resolved. People are told when a notice opens and when there is news about it, never
otherwise: by the console (readers.py), by webhooks (webhooks.py) and by e-mail (delivery.py).
"""
