"""pyVmomi's SOAP, stricter in two things: when a task is begun, and what counts as an answer.

In: calls of pyVmomi's objects. Out: their results. Whether this worker may still write is asked of tasks alone, which
are all that we change a vCenter by, once the connection stands: to connect may take longer than a lease does. What is
no answer of a vCenter, a page of a proxy say, is NotSoap: pyVmomi takes it for None, which in the place of an update
means that nothing has changed.
"""

import threading
import zlib
from typing import Any

from pyVmomi import SoapAdapter

from underhost.schemas.errors import UnderhostError
from underhost.streams.before_write import before_write

ENVELOPE = f"{SoapAdapter.XMLNS_SOAPENV}{SoapAdapter.NS_SEP}Envelope"


class NotSoap(ValueError):
    """The answer is not that of a vCenter; the text says why."""


class _Call(threading.local):
    """What this thread is asking: several share a stub."""

    begins_task = False


class SoapStub(SoapAdapter.SoapStubAdapter):  # type: ignore[misc]
    """A server, and the connections to it. Calls block, and raise NotSoap besides what pyVmomi's own raises."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._call = _Call()

    def InvokeMethod(self, mo: Any, info: Any, args: Any, outerStub: Any = None) -> Any:
        """The result of a method; where it begins a task, Unreachable if this worker may not write any more."""
        self._call.begins_task = info.isTask
        try:
            return super().InvokeMethod(mo, info, args, outerStub)
        except Exception as error:
            if type(error) is Exception:  # pyVmomi's, where the status says error and the answer none
                raise NotSoap("an error without a fault") from error
            raise

    def GetConnection(self) -> Any:
        """A connection that stands, on which nothing is to be done but to send the request."""
        connection = super().GetConnection()
        if self._call.begins_task:
            if connection.sock is None:  # closed by the server after its last answer: it would be opened on sending
                connection.connect()
            try:
                before_write()
            except UnderhostError:
                self.ReturnConnection(connection)
                raise
        return connection


class _SoapAnswers(SoapAdapter.SoapResponseDeserializer):  # type: ignore[misc]
    """Reads an answer, whose outermost element is SOAP's envelope."""

    _is_soap = False

    def Deserialize(self, response: Any, resultType: Any, nsMap: Any = None) -> Any:
        try:
            return super().Deserialize(response, resultType, nsMap)
        except NotSoap:
            raise
        except (AttributeError, LookupError, TypeError, ValueError, zlib.error) as error:
            raise NotSoap(f"{type(error).__name__}: {error}") from error

    def StartElementHandler(self, tag: str, attr: Any) -> None:
        if not self._is_soap and tag != ENVELOPE:
            raise NotSoap(f"it begins with {tag.rpartition(SoapAdapter.NS_SEP)[2]}")
        self._is_soap = True
        super().StartElementHandler(tag, attr)


def _reader(stub: Any) -> Any:
    return (_SoapAnswers if isinstance(stub, SoapStub) else _Lenient)(stub)


# A stub makes what reads an answer by this name, and offers no other way to have another one.
_Lenient = SoapAdapter.SoapResponseDeserializer
SoapAdapter.SoapResponseDeserializer = _reader
