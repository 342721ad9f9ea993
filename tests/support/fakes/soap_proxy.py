"""A vCenter's HTTPS front that a test may have refuse relocations or changes of a host's mode, have tasks fail, or hold
answers."""

import http.client
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread

from support.processes.authority import Authority
from support.processes.vcsim import Vcsim

XML = {"Content-Type": "text/xml; charset=utf-8"}
RELOCATION = re.compile(rb"<RelocateVM_Task.*?<_this[^>]*>([^<]+)<.*?<host[^>]*>([^<]+)<", re.DOTALL)
MODE = re.compile(rb"<(Enter|Exit)MaintenanceMode_Task.*?<_this[^>]*>([^<]+)<", re.DOTALL)


def refused(kind: str, privilege: str) -> bytes:
    """The answer to who has no right to an object of this kind."""
    return (
        '<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault>'
        "<faultcode>ServerFaultCode</faultcode><faultstring>refused</faultstring><detail>"
        f'<NoPermissionFault xmlns="urn:vim25" xsi:type="NoPermission"><object type="{kind}">one-0</object>'
        f"<privilegeId>{privilege}</privilegeId></NoPermissionFault>"
        "</detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>"
    ).encode()


TASK_THAT_FAILS = (
    '<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>'
    '<PowerOnVM_Task xmlns="urn:vim25"><_this type="VirtualMachine">{vm}</_this></PowerOnVM_Task>'
    "</soapenv:Body></soapenv:Envelope>"
)
"""A VM that is on cannot be switched on: vCenter takes the call, and its task fails."""


class SoapProxy:
    """Hands requests on.

    Attributes:
        refusals: so many of the next relocations are refused. failures: of so many after them the task fails.
        in_vain: (VM, host) of each relocation that was refused or failed, morefs.
        holding: while set, the answers of relocations are held back; `held` tells that one is.
        relocations: (VM, host) of each relocation that was handed on, morefs.
        mode_refusals: so many of the next changes of a host's mode are refused.
        modes: (host, `Enter` or `Exit`) of each change that was handed on, morefs; `on_mode` is called before.
    """

    def __init__(self, vcsim: Vcsim, folder: Path) -> None:
        self._port = vcsim.port
        self._trusted = ssl.create_default_context(cadata=vcsim.certificate)
        authority = Authority(folder, "soap-authority")
        self.ca, self._certificate = authority.cert, authority.certificate("soap", "IP:127.0.0.1")
        self.refusals = self.failures = 0
        self.holding, self.held, self.free = False, Event(), Event()
        self.relocations: list[tuple[str, str]] = []
        self.in_vain: list[tuple[str, str]] = []
        self._turn = Lock()
        self.mode_refusals = 0
        self.modes: list[tuple[str, str]] = []
        self.on_mode: Callable[[str, str], None] = lambda host, mode: None
        self.url = ""

    @contextmanager
    def running(self) -> Iterator["SoapProxy"]:
        """Listen until the end of the block."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate.cert, self._certificate.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{server.server_address[1]}/sdk"
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self.free.set()
            server.shutdown()
            server.server_close()

    def answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        """The vCenter's answer, or what stands in its place."""
        relocating, changing = RELOCATION.search(body), MODE.search(body)
        if relocating is not None:
            return self._relocated(method, path, body, headers, (relocating[1].decode(), relocating[2].decode()))
        if changing is not None:
            if self.mode_refusals:
                self.mode_refusals -= 1
                return 500, refused("HostSystem", "Host.Config.Maintenance"), XML
            change = changing[2].decode(), changing[1].decode()
            self.on_mode(*change)
            self.modes.append(change)
        return self._handed_on(method, path, body, headers)

    def _relocated(
        self, method: str, path: str, body: bytes, headers: dict[str, str], move: tuple[str, str]
    ) -> tuple[int, bytes, dict[str, str]]:
        refusing, failing = self._next_fault(move)
        if refusing:
            return 500, refused("VirtualMachine", "Resource.HotMigrate"), XML
        if failing:
            other = TASK_THAT_FAILS.format(vm=move[0]).encode()
            status, data, kept = self._handed_on(method, path, other, headers)
            return status, data.replace(b"PowerOnVM_Task", b"RelocateVM_Task"), kept
        answered = self._handed_on(method, path, body, headers)
        self.relocations.append(move)
        if self.holding:
            self.held.set()
            self.free.wait(60)
        return answered

    def _next_fault(self, move: tuple[str, str]) -> tuple[bool, bool]:
        """Whether this relocation is refused, and whether its task fails; several come at a time."""
        with self._turn:
            refusing = self.refusals > 0
            failing = not refusing and self.failures > 0
            self.refusals -= refusing
            self.failures -= failing
            if refusing or failing:
                self.in_vain.append(move)
            return refusing, failing

    def _handed_on(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._trusted)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        kept = {name: response.headers[name] for name in ("Content-Type", "Set-Cookie") if name in response.headers}
        return response.status, data, kept

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._hand_on("GET")

            def do_POST(self) -> None:
                self._hand_on("POST")

            def _hand_on(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                names = ("Content-Type", "Cookie", "SOAPAction", "vmware-api-session-id", "Authorization")
                headers = {name: self.headers[name] for name in names if name in self.headers}
                try:
                    status, data, kept = proxy.answer(method, self.path, body, headers)
                except (OSError, http.client.HTTPException):
                    self.close_connection = True  # the vCenter is gone, as at the end of a test
                    return
                self.send_response(status)
                for name, value in kept.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                with suppress(OSError):  # whoever has asked is gone
                    self.end_headers()
                    self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        return Handler
