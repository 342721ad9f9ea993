"""A vCenter's SOAP over a socket of ours, in the clear or by TLS: what it answers is set, what it was asked is kept."""

import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from pydantic import SecretStr
from support.processes.authority import Certificate

from underhost.streams.settings.clusters import VSphereSettings

METHOD = re.compile(rb"Body><(\w+)")
PROPERTY = re.compile(rb"<prop\b[^>]*>(\w+)<")
VERSIONS = "<namespaces><namespace><name>urn:vim25</name><version>8.0.3.0</version></namespace></namespaces>"
SPACES = (
    'xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
)
CONTENT = (
    '<returnval><rootFolder type="Folder">folders</rootFolder>'
    '<propertyCollector type="PropertyCollector">properties</propertyCollector>'
    '<viewManager type="ViewManager">views</viewManager><about><apiType>VirtualCenter</apiType></about>'
    '<sessionManager type="SessionManager">sessions</sessionManager></returnval>'
)


def envelope(body: str) -> str:
    """SOAP around a body."""
    return f'<?xml version="1.0"?><soapenv:Envelope {SPACES}><soapenv:Body>{body}</soapenv:Body></soapenv:Envelope>'


class FakeSoap:
    """A vCenter that lets everybody in.

    Attributes:
        calls: what it was asked, in order: methods, and of properties their names.
        answers: what the answers hold, by the same names; one that is not here is empty.
        pages: (status, text) that somebody on the way answers in its place, by the same names.
        keeps: whether a connection stays open after an answer.
        on_connect: called of each connection before its handshake.
    """

    def __init__(self, certificate: Certificate | None = None, *, keeps: bool = True) -> None:
        self._certificate, self.keeps = certificate, keeps
        self.calls: list[str] = []
        self.answers = {"RetrieveServiceContent": CONTENT, "Login": "<returnval><key>ours</key></returnval>"}
        self.pages: dict[str, tuple[int, str]] = {}
        self.on_connect: Callable[[], None] = lambda: None
        self.settings = VSphereSettings()

    @contextmanager
    def serving(self) -> Iterator["FakeSoap"]:
        """Listen until the end of the block; `settings` are a login."""
        with ThreadingHTTPServer(("127.0.0.1", 0), self._handler()) as server:
            url = f"http{'s' if self._certificate else ''}://127.0.0.1:{server.server_address[1]}/sdk"
            self.settings = VSphereSettings(url=url, username="u", password=SecretStr("p"), insecure=True)
            Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield self
            finally:
                server.shutdown()

    def answer(self, body: bytes) -> tuple[int, str]:
        """Status and text."""
        method = next(iter(METHOD.findall(body))).decode()
        name = next(iter(PROPERTY.findall(body))).decode() if method == "Fetch" else method
        self.calls.append(name)
        found = f'<{method}Response xmlns="urn:vim25">{self.answers.get(name, "")}</{method}Response>'
        return self.pages.get(name) or (200, envelope(found))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1" if fake.keeps else "HTTP/1.0"

            def setup(self) -> None:
                fake.on_connect()
                if fake._certificate is not None:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                    context.load_cert_chain(fake._certificate.cert, fake._certificate.key)
                    self.request = context.wrap_socket(self.request, server_side=True)
                super().setup()

            def do_GET(self) -> None:
                self._say(200, VERSIONS)

            def do_POST(self) -> None:
                self._say(*fake.answer(self.rfile.read(int(self.headers["Content-Length"]))))

            def _say(self, status: int, text: str) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/xml; charset=utf-8")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        return Handler
