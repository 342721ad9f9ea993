"""Ports of loopback that are free, and stay so until a server of a test takes them."""

import random
import socket

OURS = range(10_240, 32_768)
"""Below those that Linux gives to outgoing connections, which would take one while a JVM still starts."""


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago."""
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            one = socket.socket()
            sockets.append(one)
            try:
                one.bind(("127.0.0.1", random.choice(OURS)))
            except OSError:
                sockets.remove(one)
                one.close()
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
