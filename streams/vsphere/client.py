"""A login at a vCenter: settings in, a Session out.

Certificates are always checked with a context of our own: without one pyVmomi skips every check for loopback
addresses. Passwords and session ids are in no log, repr or error. Requests in the session are left to the callers.
"""

import asyncio
import concurrent.futures
import contextvars
import http.client
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar
from urllib.parse import SplitResult, urlsplit
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError

from pyVmomi import vim, vmodl
from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap

from underhost.schemas.errors import Conflict, Gone, InputError, Refused, UnderhostError, Unreachable
from underhost.streams.authorities import trusted_by
from underhost.streams.credentials import password_of
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere import logins
from underhost.streams.vsphere.soap import NotSoap, SoapStub

P = ParamSpec("P")
T = TypeVar("T")

LOGIN_TIMEOUT = 11.0
"""Limit for a whole login, name look-up included: a command must report within 15 s that nobody answers."""
LOGIN_STEP_TIMEOUT = 5.0
"""Seconds for one read or write on the socket while logging in."""
CALL_TIMEOUT = 15.0
"""Seconds of silence on the socket after which a call fails. Listing a vCenter anew is quicker than to wait longer for
its updates."""
LOGOUT_TIMEOUT = 2.0
"""Seconds that a stop spends on freeing the session; an unreachable server forgets it by itself."""


class SessionLost(Unreachable):
    """The server no longer knows the session: log in and list again."""


class Session:
    """One login at one vCenter.

    Attributes:
        address: `host:port`, for messages.
        content: pyVmomi's ServiceInstanceContent, the root of everything. Its calls block: use `call`.
    """

    def __init__(self, address: str, content: Any) -> None:
        self.address = address
        self.content = content

    def __repr__(self) -> str:
        return f"Session({self.address})"

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a blocking function, in a thread, with pyVmomi's errors translated as `translated` says."""
        try:
            return await in_thread(function, *args, **kwargs)
        except (vmodl.MethodFault, OSError, http.client.HTTPException, ExpatError, NotSoap) as error:
            raise translated(self.address, error) from error

    async def close(self) -> None:
        """Log out, so that the server frees the session; errors are ignored."""
        with suppress(UnderhostError, TimeoutError):
            await asyncio.wait_for(self.call(self.content.sessionManager.Logout), LOGOUT_TIMEOUT)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The function's result, computed in a daemon thread of its own; its exception is raised here.

    A cancelled caller stops waiting at once; the thread ends with the function, and its result is dropped. The loop's
    executor would not do: its threads are joined at the end of the process, so that a silent vCenter delays the stop.
    The thread has the caller's context, and with it what is asked before a write.
    """
    context = contextvars.copy_context()
    future: concurrent.futures.Future[T] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()  # from here on a cancelled caller leaves the thread its future

    def work() -> None:
        try:
            future.set_result(context.run(function, *args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - raised in the caller
            future.set_exception(error)

    threading.Thread(target=work, name=f"vsphere-{getattr(function, '__name__', 'call')}", daemon=True).start()
    return await asyncio.wrap_future(future)


async def connect(settings: VSphereSettings) -> Session:
    """Log in, with the password as the file holds it now.

    A password that was refused is not tried again at once (`logins.py`). Raises InputError (settings, password or CA
    file), Refused (password, certificate, not a vCenter), Unreachable.
    """
    url = _checked_url(settings)
    username, password = credentials(settings)
    context = tls_context(settings)
    abandoned = threading.Event()
    try:
        return await asyncio.wait_for(
            in_thread(_login, url, context, username, password, abandoned), timeout=LOGIN_TIMEOUT
        )
    except TimeoutError:
        raise Unreachable(f"vCenter {address_of(url)}: no answer within {LOGIN_TIMEOUT:.0f} s") from None
    finally:
        abandoned.set()


def translated(address: str, error: Exception) -> UnderhostError:
    """The error of pyVmomi, TLS or a socket as one of ours, by what the caller can do about it.

    SessionLost: log in again. Gone: object or collector version unknown. Conflict: name taken or request out of date.
    Refused: asking again will not help. Unreachable: it may.
    """
    who = f"vCenter {address}"
    if isinstance(error, vmodl.MethodFault):
        return _translated_fault(who, error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return Refused(f"{who}: certificate not trusted: {error.verify_message}")
    if isinstance(error, ssl.SSLEOFError):
        return Unreachable(f"{who}: connection closed during the TLS handshake")
    if isinstance(error, ssl.SSLError):
        return Refused(f"{who}: no TLS server that we can talk to ({error.reason or 'handshake failed'})")
    if isinstance(error, TimeoutError):
        return Unreachable(f"{who}: no answer in time")
    if isinstance(error, http.client.RemoteDisconnected):
        return Unreachable(f"{who}: connection closed by the server")
    if isinstance(error, OSError):
        return Unreachable(f"{who}: {error.strerror or type(error).__name__}")
    if isinstance(error, ExpatError):
        return Unreachable(f"{who}: the answer is not XML")
    if isinstance(error, NotSoap):
        return Unreachable(f"{who}: the answer is not that of a vCenter ({one_line(str(error))})")
    return Unreachable(f"{who}: {one_line(str(error)) or type(error).__name__}")


def _translated_fault(who: str, fault: Any) -> UnderhostError:
    name = type(fault).__name__.rpartition(".")[2]
    said = one_line(fault.msg) or name
    if isinstance(fault, vim.fault.NotAuthenticated):
        return SessionLost(f"{who}: the session has ended")
    if isinstance(fault, vim.fault.InvalidLogin):
        return Refused(f"{who}: wrong user name or password")
    if isinstance(fault, vim.fault.NoPermission):
        return Refused(f"{who}: permission {fault.privilegeId or 'unknown'} is missing")
    if isinstance(fault, vmodl.query.InvalidCollectorVersion | vmodl.fault.ManagedObjectNotFound):
        return Gone(f"{who}: {said}")
    if isinstance(fault, vim.fault.DuplicateName | vmodl.fault.InvalidArgument | vim.fault.ConcurrentAccess):
        return Conflict(f"{who}: {name}: {said}")
    if isinstance(fault, vmodl.fault.HostCommunication | vmodl.fault.RequestCanceled | vim.fault.Timedout):
        return Unreachable(f"{who}: {said}")
    return Refused(f"{who}: {name}: {said}")


def one_line(text: str | None) -> str:
    """Text of a server for a log or an error: one line of printable characters, not endless."""
    flat = " ".join((text or "").split())
    return "".join(character for character in flat if character.isprintable())[:256]


def _checked_url(settings: VSphereSettings) -> SplitResult:
    if not settings.url:
        raise InputError("vsphere.url: not set")
    expected = "vsphere.url: expected https://HOST[:PORT][/sdk]"
    try:
        url = urlsplit(settings.url)
        port = url.port
    except ValueError:
        raise InputError(expected) from None
    if url.scheme not in ("https", "http") or not url.hostname or port == 0:
        raise InputError(expected)
    if url.scheme == "http" and not settings.insecure:
        raise InputError("vsphere.url: http would send the password in the clear; use https")
    return url


def address_of(url: SplitResult) -> str:
    """`host:port`, for messages."""
    host = url.hostname or ""
    return f"[{host}]:{_port(url)}" if ":" in host else f"{host}:{_port(url)}"


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def credentials(settings: VSphereSettings) -> tuple[str, str]:
    """User name and password, as the file holds it now. Raises InputError."""
    if not settings.username:
        raise InputError("vsphere.username: not set")
    if settings.password_file is None:
        if settings.password is None:
            raise InputError("vsphere.passwordFile: not set, and no UNDERHOST_VSPHERE__PASSWORD in the environment")
        return settings.username, settings.password.get_secret_value()
    return settings.username, password_of("vsphere.passwordFile", settings.password_file)


def tls_context(settings: VSphereSettings) -> ssl.SSLContext:
    """How the server's certificate is checked. Raises InputError."""
    if settings.insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    return trusted_by("vsphere.caFile", settings.ca_file)


def _login(
    url: SplitResult, context: ssl.SSLContext, username: str, password: str, abandoned: threading.Event
) -> Session:
    """In a thread: find the API version, log in, and return a session whose time limits fit long polls."""
    address = address_of(url)
    try:
        version = _api_version(url, context)
        content = _content(_stub(url, context, version, LOGIN_STEP_TIMEOUT))
        if content.about.apiType != "VirtualCenter":
            raise Refused(f"vCenter {address}: this is {one_line(content.about.name)}, not a vCenter")
        with logins.turn:
            if abandoned.is_set():
                raise TimeoutError  # nobody waits for it any more
            logins.check(address, username, password)
            try:
                content.sessionManager.Login(username, password, None)
            except vim.fault.InvalidLogin as error:
                raise logins.refused(address, username, password) from error
        session_id = content.sessionManager._stub.GetSessionId()
        lasting = _content(_stub(url, context, version, CALL_TIMEOUT, session_id))
    except (vmodl.MethodFault, OSError, http.client.HTTPException) as error:
        raise translated(address, error) from error
    except (ExpatError, ElementTree.ParseError, AttributeError, KeyError, TypeError, ValueError) as error:
        # What pyVmomi's deserialiser raises on an answer that is no SOAP.
        raise Refused(f"vCenter {address}: the answer is not that of a vCenter") from error
    if abandoned.is_set():
        with suppress(vmodl.MethodFault, OSError, http.client.HTTPException):
            lasting.sessionManager.Logout()  # the caller has given up: leave no session behind
    return Session(address, lasting)


def _content(stub: Any) -> Any:
    return vim.ServiceInstance("ServiceInstance", stub).RetrieveContent()


def _stub(
    url: SplitResult, context: ssl.SSLContext, version: str, timeout: float, session_id: str | None = None
) -> SoapStub:
    port = _port(url)
    return SoapStub(
        host=url.hostname,
        port=port if url.scheme == "https" else -port,
        path=_path(url),
        version=version,
        sslContext=context,
        httpConnectionTimeout=timeout,
        connectionPoolTimeout=60,  # an idle connection may have been closed by a proxy on the way
        sessionId=session_id,
    )


def _path(url: SplitResult) -> str:
    return url.path.rstrip("/") or "/sdk"


def _api_version(url: SplitResult, context: ssl.SSLContext) -> str:
    """The newest API version that both sides know. pyVmomi's own look-up has no time limit."""
    connection: http.client.HTTPConnection
    if url.scheme == "https":
        connection = http.client.HTTPSConnection(
            url.hostname or "", _port(url), timeout=LOGIN_STEP_TIMEOUT, context=context
        )
    else:
        connection = http.client.HTTPConnection(url.hostname or "", _port(url), timeout=LOGIN_STEP_TIMEOUT)
    try:
        connection.request("GET", f"{_path(url)}/vimServiceVersions.xml")
        response = connection.getresponse()
        if response.status >= 500:
            raise Unreachable(f"vCenter {address_of(url)}: {response.status} {one_line(response.reason)}")
        if response.status != 200:
            raise Refused(f"vCenter {address_of(url)}: not a vCenter ({response.status} for {_path(url)})")
        tree = ElementTree.fromstring(response.read(1_000_000))
    finally:
        connection.close()
    if tree.tag != "namespaces":
        raise Refused(f"vCenter {address_of(url)}: the answer is not that of a vCenter")
    offered = {element.text for element in tree.iter("version")}
    for version in GetServiceVersions("vim25"):
        if versionIdMap[version] in offered:
            return str(version)
    raise Refused(f"vCenter {address_of(url)}: offers no API version that we know")
