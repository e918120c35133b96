"""Users, members, their roles, sessions and API tokens.

Pages: console/people/.
"""
