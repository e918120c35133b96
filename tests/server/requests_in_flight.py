"""Requests that a server has begun to read when it is told to end."""

import socket

import psutil

PATIENT = {"storage.server.http_server": {"DRAIN": 50}}  # seconds for requests in flight, in place of ten
_UNFINISHED = (
    b"POST /devstoreaccount1/Tables HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 20\r\nExpect: 100-continue\r\n\r\n"
)


def begin_request(live):
    connection = socket.create_connection(("127.0.0.1", live.port), timeout=60)
    connection.sendall(_UNFINISHED)
    assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"{")
    return connection


def is_listening(live):
    try:
        socket.create_connection(("127.0.0.1", live.port), timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def command_line(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def find_workers(live):
    children = psutil.Process(live.pid).children()
    return [child for child in children if "storage.server.worker" in command_line(child)]
