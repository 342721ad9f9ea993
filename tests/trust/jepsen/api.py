"""The API server as an administrator asks it, many questions at a time.

In: a running API server. Out: decoded answers. By plain HTTP, not by the product's clients.
"""

import json
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec
from support.processes.kube import ADMIN_TOKEN, Kube

HEADERS = {"Authorization": f"Bearer {ADMIN_TOKEN}", "User-Agent": "Python-urllib trust"}


class _Collection(msgspec.Struct):
    items: list[msgspec.Raw]


class Api:
    """Used as an asynchronous context. `pods` is the path of the pods."""

    pods = "/api/v1/namespaces/default/pods"

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def __aenter__(self) -> "Api":
        tls = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(self._kube.ca)))
        self._session = aiohttp.ClientSession(connector=tls, timeout=aiohttp.ClientTimeout(60))
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The decoded answer. Raises aiohttp.ClientResponseError for a refusal."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {**HEADERS, "Content-Type": kind}
        data = None if body is None else json.dumps(body)
        async with self._session.request(method, self._kube.server + path, data=data, headers=headers) as answer:
            answer.raise_for_status()
            return await answer.json()

    async def items(self, path: str) -> list[bytes]:
        """The objects of a collection, each as the server writes it."""
        async with self._session.get(self._kube.server + path, headers=HEADERS) as answer:
            answer.raise_for_status()
            return [bytes(item) for item in msgspec.json.decode(await answer.read(), type=_Collection).items]

    async def exists(self, path: str) -> bool:
        """Whether there is something at the path."""
        try:
            await self.ask("GET", path)
        except aiohttp.ClientResponseError:
            return False
        return True

    async def answers(self, url: str) -> bool:
        """Whether a worker answers 200."""
        try:
            async with self._session.get(url, timeout=aiohttp.ClientTimeout(2)) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False
