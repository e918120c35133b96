"""Copies between an account of this server and another table service, or from a file of Azurite.

Client: storage/remote/.
"""
