"""What a certificate is checked against is the same on every Python."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.processes.authority import Authority

from underhost.streams.authorities import trusted_by
from underhost.streams.kafka import security
from underhost.streams.kubernetes import kubeconfig
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaTlsSettings
from underhost.streams.vsphere.client import tls_context


async def of_a_setting(authority: Path) -> ssl.SSLContext:
    return trusted_by("alerting.caFile", authority)


async def of_kafka(authority: Path) -> ssl.SSLContext:
    context = security.tls_context(KafkaTlsSettings(ca_file=authority))
    assert context is not None
    return context


async def of_vcenter(authority: Path) -> ssl.SSLContext:
    return tls_context(VSphereSettings(ca_file=authority))


async def of_the_api_server(authority: Path) -> ssl.SSLContext:
    file = authority.with_name("kubeconfig")
    cluster = {"server": "https://127.0.0.1", "certificate-authority": str(authority)}
    contexts = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    users = [{"name": "u", "user": {}}]
    clusters = [{"name": "c", "cluster": cluster}]
    file.write_text(json.dumps({"current-context": "x", "contexts": contexts, "clusters": clusters, "users": users}))
    api = await kubeconfig.load(kubeconfig.Origin((file,), None))
    context: ssl.SSLContext = api.rest_client.pool_manager.connector._ssl
    await api.close()
    return context


@pytest.fixture
def newer_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts are made as strict as Python makes them from 3.13 on."""
    made = ssl.create_default_context

    def strict(*arguments: Any, **options: Any) -> ssl.SSLContext:
        context = made(*arguments, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


@pytest.mark.usefixtures("newer_python")
@pytest.mark.parametrize("trusting", [of_a_setting, of_kafka, of_vcenter, of_the_api_server])
async def test_an_authority_that_does_not_say_that_it_signs_is_trusted(
    trusting: Callable[[Path], Awaitable[ssl.SSLContext]], tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "old", old=True)
    certificate = authority.certificate("server", "IP:127.0.0.1")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate.cert, certificate.key)

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0, ssl=serving) as server:
        trusted = await trusting(authority.cert)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=trusted)
        assert await reader.readline() == b"hello\n"
        writer.close()
