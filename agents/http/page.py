"""The page itself: the files of `static/`, read once, served from memory. They need nothing from anywhere else.

In: the packaged files. Out: `/` and `/static/NAME`. A browser keeps them and asks whether they are still the same.
"""

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def routes() -> list[web.RouteDef]:
    """The routes of the page."""
    held: dict[str, tuple[bytes, str, str]] = {}
    for name, body in _files(files(__package__).joinpath("static")):
        _, _, ending = name.rpartition(".")
        if ending in TYPES:
            held[name] = body, TYPES[ending], hashlib.blake2b(body, digest_size=12).hexdigest()

    def answer(request: web.Request, name: str) -> web.Response:
        if name not in held:
            raise web.HTTPNotFound
        body, content_type, tag = held[name]
        headers = {"Content-Type": content_type, "Cache-Control": "no-cache", "ETag": f'"{tag}"'}
        if any(known.value == tag for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        response = web.Response(body=body, headers=headers)
        response.enable_compression()
        return response

    async def index(request: web.Request) -> web.Response:
        return answer(request, "index.html")

    async def static(request: web.Request) -> web.Response:
        return answer(request, request.match_info["name"])

    return [web.get("/", index), web.get("/static/{name:.+}", static)]


def _files(folder: Traversable, path: str = "") -> Iterator[tuple[str, bytes]]:
    """Every file in a folder and the folders in it, by its path."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{path}{entry.name}/")
        else:
            yield path + entry.name, entry.read_bytes()
