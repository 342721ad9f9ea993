"""The page itself: the files of `static/`, read once, served from memory. They need nothing from anywhere else.

In: the packaged files. Out: `/`, `/static/NAME` and `/runbooks/NAME`. A browser keeps them and asks whether they are
still the same.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web

from underhost.agents.http.runbooks import page, runbooks

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def routes() -> list[web.RouteDef]:
    """The routes of the page."""
    static_files = dict(_files(files(__package__).joinpath("static")))
    held = {name: _tagged(name, body) for name, body in static_files.items() if name.rpartition(".")[2] in TYPES}
    texts = runbooks()

    @cache
    def told(name: str) -> tuple[bytes, str, str]:
        return _tagged(f"{name}.html", page(name, texts[name]))

    def answer(request: web.Request, found: tuple[bytes, str, str] | None) -> web.Response:
        if found is None:
            raise web.HTTPNotFound
        body, content_type, tag = found
        headers = {"Content-Type": content_type, "Cache-Control": "no-cache", "ETag": f'"{tag}"'}
        if any(known.value == tag for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        response = web.Response(body=body, headers=headers)
        response.enable_compression()
        return response

    async def index(request: web.Request) -> web.Response:
        return answer(request, held["index.html"])

    async def static(request: web.Request) -> web.Response:
        return answer(request, held.get(request.match_info["name"]))

    async def runbook(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return answer(request, told(name) if name in texts else None)

    return [web.get("/", index), web.get("/static/{name:.+}", static), web.get("/runbooks/{name}", runbook)]


def _tagged(name: str, body: bytes) -> tuple[bytes, str, str]:
    """A file with its type and its tag."""
    return body, TYPES[name.rpartition(".")[2]], hashlib.blake2b(body, digest_size=12).hexdigest()


def _files(folder: Traversable, path: str = "") -> Iterator[tuple[str, bytes]]:
    """Every file in a folder and the folders in it, by its path."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{path}{entry.name}/")
        else:
            yield path + entry.name, entry.read_bytes()
