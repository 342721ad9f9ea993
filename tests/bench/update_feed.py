"""vcsim, with its feed of updates made fast: what lets it move fifty VMs a second. Called by `bench.labels`.

vcsim reads every object of a property filter anew, through XML, for each of the eight or so updates of a vMotion: with
600 VMs that is over 100 ms of CPU a move, so that it falls behind without end (`bench.labels` prints none of that).
Here a TLS server stands in front of it and passes every call on, but one: the waits for updates after the first list
are answered from the moves that were made, in vcsim's own words. Login, list, polls and the vMotions themselves are
vcsim's, and the client's TLS, SOAP and parsing are what they are with any vCenter.
"""

import re
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

GATHER = 0.02
"""Seconds in which updates gather before they are sent: as in vcsim."""
LONGEST = 4.0
"""Seconds that a wait without updates lasts."""
ENVELOPE = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>'
    '<WaitForUpdatesExResponse xmlns="urn:vim25">{}</WaitForUpdatesExResponse></soapenv:Body></soapenv:Envelope>'
)
UPDATES = (
    "<returnval><version>{}</version><filterSet><filter type='PropertyFilter'>moves</filter>{}</filterSet></returnval>"
)
UPDATE = (
    '<objectSet><kind>modify</kind><obj type="VirtualMachine">{}</obj><changeSet><name>runtime.host</name>'
    '<op>assign</op><val type="HostSystem" xsi:type="ManagedObjectReference">{}</val></changeSet></objectSet>'
)


class UpdateFeed:
    """The server in front of a vcsim at `port`. `url` is what a client takes, `certificate` (PEM) what it trusts.

    Attributes:
        listing: whether there are more pages of the first list, which is vcsim's.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._port, self._cond = port, threading.Condition()
        self._moved: list[tuple[str, str]] = []
        self.listing = True
        key, pem = folder / "feed.key", folder / "feed.pem"
        names = ["-subj", "/CN=feed", "-addext", "subjectAltName=IP:127.0.0.1"]
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
        subprocess.run([*made, "-keyout", str(key), "-out", str(pem)], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem, key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.certificate = pem.read_text()
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/sdk"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def moved(self, vm: str, host: str) -> None:
        """vcsim has taken this move; both are morefs."""
        with self._cond:
            self._moved.append((vm, host))
            self._cond.notify_all()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()

    def wait(self, version: str) -> str:
        """The answer to a wait: what has moved since this version, which counts the moves that were told."""
        told = int(version.partition("moves-")[2] or 0)
        deadline = time.monotonic() + LONGEST
        with self._cond:
            while len(self._moved) == told and (left := deadline - time.monotonic()) > 0:
                self._cond.wait(left)
        time.sleep(GATHER)
        new = dict(self._moved[told:])
        if not new:
            return ENVELOPE.format("")
        updates = "".join(UPDATE.format(vm, host) for vm, host in new.items())
        return ENVELOPE.format(UPDATES.format(f"moves-{len(self._moved)}", updates))

    def _handler(feed) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # headers and body in one packet

            def setup(self) -> None:
                super().setup()
                trusting = ssl._create_unverified_context()
                self.behind = HTTPSConnection("127.0.0.1", feed._port, context=trusting)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked = re.search(rb"<WaitForUpdatesEx .*<version[^>]*>([^<]+)</version>", body, re.S)
                if asked is None or feed.listing:
                    self._pass(body)
                else:
                    self._answer(200, {"Content-Type": "text/xml"}, feed.wait(asked[1].decode()).encode())

            def do_GET(self) -> None:
                self._pass(None)

            def _pass(self, body: bytes | None) -> None:
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                self.behind.request(self.command, self.path, body, headers)
                answer = self.behind.getresponse()
                kept = {name: value for name, value in answer.getheaders() if name in ("Content-Type", "Set-Cookie")}
                said = answer.read()
                if b"<WaitForUpdatesExResponse" in said:
                    feed.listing = b"<truncated>true" in said
                self._answer(answer.status, kept, said)

            def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                with suppress(OSError):  # who asked may have gone
                    self.send_response(status)
                    for name, value in {**headers, "Content-Length": str(len(body))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
