"""Notices: what people should know of without looking for it.

A *condition* (conditions.py) is a declaration with a query that finds what is so now. One process of all servers
evaluates them once a minute (evaluation.py): what is found opens a notice, which stays until it is no longer found, and
is then resolved. People are told when a notice opens and when there is news about it, never otherwise: by the console
(readers.py), by webhooks (webhooks.py) and by e-mail (delivery.py). To add a kind: its name and sentence in
storage.domain.service.notices, its condition here, and its words in console/notices/presentation.py.
"""
