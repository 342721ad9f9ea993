"""pyVmomi's SOAP, stricter in one thing: when a task is begun.

In: calls of pyVmomi's objects. Out: their results. Whether this worker may still write is asked of tasks alone, which
are all that we change a vCenter by, once the connection stands: to connect may take longer than a lease does.
"""

import threading
from typing import Any

from pyVmomi import SoapAdapter

from underhost.schemas.errors import UnderhostError
from underhost.streams.before_write import before_write


class _Call(threading.local):
    """What this thread is asking: several share a stub."""

    begins_task = False


class SoapStub(SoapAdapter.SoapStubAdapter):  # type: ignore[misc]
    """A server, and the connections to it. Calls block."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._call = _Call()

    def InvokeMethod(self, mo: Any, info: Any, args: Any, outerStub: Any = None) -> Any:
        """The result of a method; where it begins a task, Unreachable if this worker may not write any more."""
        self._call.begins_task = info.isTask
        return super().InvokeMethod(mo, info, args, outerStub)

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
