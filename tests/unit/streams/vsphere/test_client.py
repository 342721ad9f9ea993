"""What an error of pyVmomi, TLS or a socket means for the caller, and which settings are refused before any login."""

import http.client
import socket
import ssl
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

import pytest
from pydantic import SecretStr
from pyVmomi import vim, vmodl

from underhost.schemas.errors import Conflict, Gone, InputError, Refused, UnderhostError, Unreachable
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.client import SessionLost, connect, translated
from underhost.streams.vsphere.soap import NotSoap


def untrusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "certificate has expired"
    return error


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        pytest.param(vim.fault.NotAuthenticated(), SessionLost, "the session has ended", id="session expired"),
        pytest.param(vim.fault.InvalidLogin(), Refused, "wrong user name or password", id="wrong password"),
        pytest.param(
            vim.fault.NoPermission(privilegeId="Host.Inventory.EditCluster"),
            Refused,
            "permission Host.Inventory.EditCluster is missing",
            id="no permission",
        ),
        pytest.param(vmodl.query.InvalidCollectorVersion(), Gone, "InvalidCollectorVersion", id="collector version"),
        pytest.param(
            vmodl.fault.ManagedObjectNotFound(msg="no such VM"), Gone, "no such VM", id="object deleted meanwhile"
        ),
        pytest.param(vim.fault.DuplicateName(msg="taken"), Conflict, "DuplicateName: taken", id="name taken"),
        pytest.param(
            vmodl.fault.InvalidArgument(msg="A specified\nparameter"),
            Conflict,
            "InvalidArgument: A specified parameter",
            id="invalid argument",
        ),
        pytest.param(
            vim.fault.InsufficientResourcesFault(msg="full"),
            Refused,
            "InsufficientResourcesFault: full",
            id="any other",
        ),
        pytest.param(untrusted(), Refused, "certificate not trusted: certificate has expired", id="certificate"),
        pytest.param(ssl.SSLEOFError(8, "EOF"), Unreachable, "closed during the TLS handshake", id="cut handshake"),
        pytest.param(TimeoutError(), Unreachable, "no answer in time", id="silence"),
        pytest.param(ConnectionRefusedError(111, "Connection refused"), Unreachable, "Connection refused", id="port"),
        pytest.param(socket.gaierror(-2, "Name or service not known"), Unreachable, "not known", id="host name"),
        pytest.param(http.client.RemoteDisconnected(), Unreachable, "closed by the server", id="disconnected"),
        pytest.param(http.client.HTTPException("503 Unavailable"), Unreachable, "503 Unavailable", id="starting up"),
        pytest.param(ExpatError(), Unreachable, "the answer is not XML", id="garbage"),
        pytest.param(
            NotSoap("it begins\nwith html"), Unreachable, "not that of a vCenter (it begins with html)", id="a page"
        ),
    ],
)
def test_an_error_says_what_the_caller_can_do_about_it(
    error: Exception, kind: type[UnderhostError], reason: str
) -> None:
    ours = translated("vc:443", error)
    assert type(ours) is kind
    assert str(ours).startswith("vCenter vc:443: ")
    assert reason in str(ours)
    assert "\n" not in str(ours)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"url": None}, "vsphere.url: not set", id="no URL"),
        pytest.param({"url": "vc.example"}, "vsphere.url: expected https://", id="no scheme"),
        pytest.param({"url": "https://vc:99999/sdk"}, "vsphere.url: expected https://", id="no such port"),
        pytest.param({"url": "https://[vc/sdk"}, "vsphere.url: expected https://", id="half an address"),
        pytest.param({"url": "http://vc/sdk"}, "http would send the password in the clear", id="no TLS"),
        pytest.param({"username": None}, "vsphere.username: not set", id="no user"),
        pytest.param({"password": None}, "vsphere.passwordFile: not set", id="no password"),
        pytest.param({"password_file": Path("/nowhere/p")}, "/nowhere/p: No such file", id="missing file"),
        pytest.param({"password_file": Path("/dev/null")}, "/dev/null: empty", id="empty file"),
        pytest.param({"ca_file": Path("/nowhere/ca")}, "/nowhere/ca: No such file", id="missing CA file"),
        pytest.param({"ca_file": Path("/dev/null")}, "no PEM certificate in it", id="empty CA file"),
    ],
)
async def test_settings_that_cannot_work_are_said_before_anything_is_sent(changes: dict[str, Any], reason: str) -> None:
    settings = VSphereSettings(url="https://vc.invalid/sdk", username="u", password=SecretStr("canary"))
    with pytest.raises(InputError) as caught:
        await connect(settings.model_copy(update=changes))
    assert reason in str(caught.value)
    assert "canary" not in str(caught.value) + repr(caught.value)


def test_the_password_is_not_in_the_settings_text() -> None:
    settings = VSphereSettings(url="https://vc/sdk", username="u", password=SecretStr("canary"))
    assert "canary" not in f"{settings!r} {settings}"
