"""How fast the generator itself is: its loop against a process that answers at once."""

import multiprocessing
import select
import socket
from itertools import repeat

from tests.bench.load import Expected, Measurement, Run

SMALL = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 1300000\r\n\r\n" + (b"{" + b"x" * 1299) * 1000


def measure(
    answer: bytes, request: bytes, expected: Expected, connections: int, seconds: float
) -> Measurement:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    responder = multiprocessing.get_context("fork").Process(
        target=respond, args=(listener, answer), daemon=True
    )
    responder.start()
    try:
        run = Run(repeat(request), expected, seconds=seconds, warm_up=0.2)
        return run.measure(listener.getsockname(), connections)
    finally:
        responder.terminate()
        responder.join()
        listener.close()


def respond(listener: socket.socket, answer: bytes) -> None:
    """One answer per readable event: the requests of this measurement arrive in one piece."""
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    links: dict[int, socket.socket] = {}
    while True:
        for number, _ in poll.poll():
            if number == listener.fileno():
                link, _ = listener.accept()
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                links[link.fileno()] = link
                poll.register(link, select.EPOLLIN)
            elif links[number].recv(65536):
                links[number].sendall(answer)
            else:
                links.pop(number).close()
