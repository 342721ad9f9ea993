"""TLS of the listeners: certificates of clients, rotation, and an extender that listens on its own."""

import asyncio
import os
import shutil
import socket
import ssl
from pathlib import Path

import aiohttp
import pytest
from support.answers.http import an_error
from support.processes.authority import Authority, Certificate
from support.sites.doors import TOKEN, bearer, knock, listening

from underhost.agents.http.doors.tls import listener_tls
from underhost.schemas.errors import InputError
from underhost.streams.settings.model import Settings
from underhost.streams.settings.web import ExtenderSettings, ListenerTlsSettings, WebSettings

HERE = "IP:127.0.0.1"
PLAN, BIND = "POST /api/v1/whatif", "POST /extender/bind"


class Files:
    """Certificates in a folder: the listener's, and of who is trusted and who is not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ours, self.clients, self.others = (Authority(folder, name) for name in ("ours", "clients", "others"))
        self.known = self.clients.certificate("scheduler", HERE)
        self.stranger = self.others.certificate("stranger", HERE)
        self._put(self.ours.certificate("first", HERE))
        shutil.copy(self.clients.cert, folder / "client-ca.pem")

    def tls(self, *, clients: bool = True) -> ListenerTlsSettings:
        ca = self.folder / "client-ca.pem" if clients else None
        return ListenerTlsSettings(
            cert_file=self.folder / "tls.pem", key_file=self.folder / "tls.key", client_ca_file=ca
        )

    def _put(self, made: Certificate, at: int = 1) -> None:
        for source, name in ((made.cert, "tls.pem"), (made.key, "tls.key")):
            shutil.copy(source, self.folder / name)
            os.utime(self.folder / name, ns=(at, at))

    def rotate(self) -> None:
        """A new certificate for the listener, of another authority; and clients of others are trusted from now on."""
        self._put(self.others.certificate("second", HERE), 2)
        shutil.copy(self.others.cert, self.folder / "client-ca.pem")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


def client(trusted: Authority, shown: Certificate | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(trusted.cert))
    if shown is not None:
        context.load_cert_chain(str(shown.cert), str(shown.key))
    return context


async def test_a_certificate_of_the_client_ca_is_a_credential_and_no_other_is(files: Files) -> None:
    settings = Settings(web=WebSettings(listen="127.0.0.1:0", tls=files.tls(), anonymous_read=False))
    async with listening(settings) as opened:
        assert opened.address.startswith("https://127.0.0.1:")
        for request in (PLAN, BIND, "GET /api/v1/map"):
            assert (await knock(opened.address, request, tls=client(files.ours, files.known))).status == 200
            nothing = await knock(opened.address, request, tls=client(files.ours))
            assert nothing[:2] == (401, an_error("a client certificate is needed"))
        assert (await knock(opened.address, "GET /healthz", tls=client(files.ours))).status == 200  # a kubelet has none
        with pytest.raises(aiohttp.ClientError):
            await knock(opened.address, "GET /healthz", tls=client(files.ours, files.stranger))


async def test_under_tls_the_cookie_goes_over_nothing_else(files: Files, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    web = WebSettings(listen="127.0.0.1:0", tls=files.tls(clients=False), token_file=tmp_path / "token")
    async with listening(Settings(web=web)) as opened:
        trusting = client(files.ours)
        answer = await knock(opened.address, "POST /api/v1/session", body={"token": TOKEN}, tls=trusting)
        assert "; Secure" in answer.headers["Set-Cookie"]
        assert (await knock(opened.address, PLAN, tls=trusting)).body == an_error("the token is needed")
        assert (await knock(opened.address, PLAN, tls=trusting, **bearer())).status == 200


async def test_rotated_files_are_used_by_the_next_connection(tmp_path: Path) -> None:
    files = Files(tmp_path)
    settings = Settings(web=WebSettings(listen="127.0.0.1:0", tls=files.tls(), anonymous_read=False))
    async with listening(settings) as opened:
        before, after = client(files.ours, files.known), client(files.others, files.stranger)
        assert (await knock(opened.address, PLAN, tls=before)).status == 200
        with pytest.raises(aiohttp.ClientError):
            await knock(opened.address, PLAN, tls=after)
        files.rotate()
        assert (await knock(opened.address, PLAN, tls=after)).status == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await knock(opened.address, PLAN, tls=before)
        with pytest.raises(aiohttp.ClientError):  # it trusts the new certificate, but is trusted no longer
            await knock(opened.address, PLAN, tls=client(files.others, files.known))
        (tmp_path / "tls.key").write_text("half")
        assert (await knock(opened.address, PLAN, tls=after)).status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda one: one.name)
async def test_no_session_is_resumed_so_that_who_is_trusted_is_asked_every_time(
    files: Files, version: ssl.TLSVersion
) -> None:
    settings = Settings(web=WebSettings(listen="127.0.0.1:0", tls=files.tls()))
    trusting = client(files.ours, files.known)
    trusting.maximum_version = version

    def connect(port: int, session: ssl.SSLSession | None) -> ssl.SSLSession | None:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            trusting.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as secure,
        ):
            secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert secure.recv(12) == b"HTTP/1.1 200"
            assert not secure.session_reused
            return secure.session

    async with listening(settings) as opened:
        port = int(opened.address.rstrip("/").rpartition(":")[2])
        if version is ssl.TLSVersion.TLSv1_2:  # it resumes by a number that the server keeps, so it is not spoken
            with pytest.raises(ssl.SSLError):
                await asyncio.to_thread(connect, port, None)
        else:
            session = await asyncio.to_thread(connect, port, None)
            await asyncio.to_thread(connect, port, session)


async def test_an_extender_of_its_own_lets_nobody_in_without_a_certificate(files: Files) -> None:
    web = WebSettings(listen="127.0.0.1:0")
    settings = Settings(web=web, extender=ExtenderSettings(listen="127.0.0.1:0", tls=files.tls()))
    async with listening(settings) as opened:
        scheduler = client(files.ours, files.known)
        for verb in ("filter", "prioritize", "preempt", "bind"):
            assert (await knock(opened.questions, f"POST /extender/{verb}", tls=scheduler)).status == 200
            assert (await knock(opened.address, f"POST /extender/{verb}")).status == 404
        assert (await knock(opened.address, "GET /extender/readyz")).status == 200
        assert (await knock(opened.questions, "GET /api/v1/map", tls=scheduler)).status == 404
        for stranger in (client(files.ours), client(files.ours, files.stranger)):
            with pytest.raises(aiohttp.ClientError):
                await knock(opened.questions, "POST /extender/filter", tls=stranger)


async def test_an_extender_of_its_own_may_be_behind_the_token_alone(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    web = WebSettings(listen="127.0.0.1:0", token_file=tmp_path / "token")
    async with listening(Settings(web=web, extender=ExtenderSettings(listen="127.0.0.1:0"))) as opened:
        assert (await knock(opened.questions, BIND)).status == 401
        assert (await knock(opened.questions, BIND, **bearer())).status == 200


async def test_who_only_connects_and_says_nothing_holds_nobody_up(files: Files) -> None:
    settings = Settings(web=WebSettings(listen="127.0.0.1:0", tls=files.tls(clients=False)))
    async with listening(settings) as opened:
        port = int(opened.address.rstrip("/").rpartition(":")[2])
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        assert (await knock(opened.address, "GET /healthz", tls=client(files.ours))).status == 200
        for _, writer in silent:
            writer.close()


@pytest.mark.parametrize(
    ("cert", "key", "ca", "why"),
    [
        pytest.param("gone", "tls.key", None, "web.tls.certFile: {}/gone: No such file or directory", id="no file"),
        pytest.param(
            "client-ca.pem",
            "tls.key",
            None,
            "web.tls.keyFile: {}/tls.key: not the key of this certificate",
            id="swapped",
        ),
        pytest.param(
            "tls.pem",
            None,
            None,
            "web.tls.certFile: {}/tls.pem: no PEM certificate with its key, without a passphrase",
            id="no key",
        ),
        pytest.param(
            "tls.pem", "tls.key", "tls.key", "web.tls.clientCaFile: {}/tls.key: no PEM certificate in it", id="no CA"
        ),
    ],
)
def test_files_that_make_no_door_are_one_clear_line(
    files: Files, cert: str, key: str | None, ca: str | None, why: str
) -> None:
    at = files.folder
    settings = ListenerTlsSettings(
        cert_file=at / cert, key_file=at / key if key else None, client_ca_file=at / ca if ca else None
    )
    with pytest.raises(InputError) as caught:
        listener_tls(settings, "web.tls")
    assert str(caught.value) == why.format(at)
