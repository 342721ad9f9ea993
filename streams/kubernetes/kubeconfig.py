"""Which cluster, as which user: kubeconfig and context, $KUBECONFIG, ~/.kube/config, in-cluster, in that order.

In: the settings and the environment. Out: kubernetes_asyncio's ApiClient, not yet used, and its origin. A fault is an
InputError of one line that names the file. The server is not asked.
"""

import asyncio
import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.near import did_you_mean
from underhost.streams.kubernetes import library
from underhost.streams.settings.clusters import KubernetesSettings
from underhost.streams.settings.file import parsed

# What kubernetes_asyncio raises beside its own exception, for a file of the wrong shape or a failing plugin.
_LIBRARY_SLIPS = (OSError, ValueError, TypeError, KeyError, AttributeError, AssertionError, RuntimeError)

POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where a pod finds the name of its namespace."""
CONNECTIONS = 256
"""At most: more than all sinks and watches use at once, so that no lease waits for another request to end."""
READ_BUFFER = 2**21
"""Bytes, as kubernetes_asyncio has it: an object can be longer than aiohttp's default."""


class NotConfigured(InputError):
    """Nothing says which cluster is meant: there may be none."""


class Origin(NamedTuple):
    """Where the configuration is: `files` (merged as $KUBECONFIG merges them) or, when empty, the pod we are in."""

    files: tuple[Path, ...]
    context: str | None

    def __str__(self) -> str:
        return os.pathsep.join(str(file) for file in self.files) or "in-cluster configuration"


def find(settings: KubernetesSettings, environ: Mapping[str, str]) -> Origin:
    """The first place that is there. Raises InputError when it is not, NotConfigured when there is none."""
    if settings.kubeconfig is not None:
        return Origin(_existing((settings.kubeconfig,), str(settings.kubeconfig)), settings.context)
    if listed := environ.get("KUBECONFIG"):
        files = tuple(Path(part) for part in listed.split(os.pathsep) if part)
        return Origin(_existing(files, f"$KUBECONFIG: {listed}"), settings.context)
    default = Path(environ.get("HOME") or "/") / ".kube" / "config"
    if default.is_file():
        return Origin((default,), settings.context)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        if settings.context:
            raise InputError(
                f"context {settings.context}: there is no kubeconfig to find it in, only the pod's account"
            )
        return Origin((), None)
    raise NotConfigured(
        f"no Kubernetes cluster is configured: no kubeconfig given, no $KUBECONFIG, no {default}, not in a pod"
    )


def _existing(files: tuple[Path, ...], place: str) -> tuple[Path, ...]:
    there = tuple(path for path in (file.expanduser() for file in files) if path.exists())
    if not there:
        raise InputError(f"{place}: no such file")
    return there


async def prepare() -> None:
    """Import what `load` needs: it takes its time, which must not count as the credentials'."""
    await asyncio.to_thread(library.load)


async def load(origin: Origin) -> Any:
    """An ApiClient for the origin's cluster. Raises InputError."""
    context = (await asyncio.to_thread(_context, origin))[0] if origin.files else None
    # A tenth of a second of imports: off the event loop, and only for a live cluster.
    config_module, client_module = await asyncio.to_thread(library.load)
    configuration = client_module.Configuration()
    _forget_lost_files(config_module)
    try:
        if origin.files:
            await config_module.load_kube_config(
                config_file=os.pathsep.join(str(file) for file in origin.files),
                context=context,
                client_configuration=configuration,
                persist_config=False,  # never write a renewed token into the owner's file
            )
        else:
            config_module.load_incluster_config(client_configuration=configuration)
    except (config_module.ConfigException, *_LIBRARY_SLIPS) as error:
        raise InputError(_why_not(origin, error)) from error
    _check_server(origin, configuration.host)
    try:
        configuration.api_key = {name: _clean_token(value) for name, value in configuration.api_key.items()}
    except ValueError as error:
        raise InputError(f"{origin}: {error}") from error
    configuration.connection_pool_maxsize = CONNECTIONS
    configuration.disable_strict_ssl_verification = True  # as `authorities.trusted_by`
    try:
        return _as_kubectl_asks(client_module.ApiClient(configuration))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError: an unreadable CA, certificate or key
        raise InputError(f"{origin}: certificates cannot be used: {_one_line(error)}") from error


async def authorize(api: Any, headers: dict[str, str]) -> None:
    """Add the user's credentials to the headers of a request.

    Raises Unreachable where a pod's token cannot be read now: kubelet writes it anew before it ends.
    """
    try:
        await api.update_params_for_auth(headers, [], ["BearerToken"])
        if (user := headers.get("authorization")) is not None:
            headers["authorization"] = _clean_token(user)
    except (library.load()[0].ConfigException, OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or _one_line(error)
        raise Unreachable(f"{api.configuration.host}: the credentials cannot be read now: {why}") from error


def _forget_lost_files(config_module: Any) -> None:
    """The library writes certificates of a kubeconfig to temporary files, once; a system sweeps those away some day."""
    files = config_module.kube_config._temp_files
    for content in [content for content, file in files.items() if not Path(file).exists()]:
        del files[content]


def _clean_token(text: str) -> str:
    """Without the line break at the end of a token's file, as kubectl has it. Raises ValueError."""
    token = text.strip()
    if not (token.isascii() and token.isprintable()):
        raise ValueError("the user's token holds a line break, or another character that no token has")
    return token


def _why_not(origin: Origin, error: Exception) -> str:
    """One line; what a plugin that should give the credentials failed of is not the kubeconfig's fault."""
    if isinstance(error, (FileNotFoundError, PermissionError)) and error.filename:
        return (
            f"{error.filename}, which {origin} names: {error.strerror} "
            "(a credentials plugin must be installed, and on PATH)"
        )
    said = _one_line(error)
    plugin = said.removeprefix("exec: ")
    return f"{origin}: {said}" if plugin == said else f"the credentials plugin that {origin} names failed: {plugin}"


def insecure(configuration: Any) -> str:
    """What keeps nobody from reading or answering in the server's place, as one line; "" where all is well."""
    if urlsplit(configuration.host).scheme == "http":
        return f"{configuration.host} is http: nothing is encrypted, and whoever is on the way can answer in its place"
    if not configuration.verify_ssl:
        return f"the certificate of {configuration.host} is not checked (insecure-skip-tls-verify)"
    return ""


def _as_kubectl_asks(api: Any) -> Any:
    """The proxy of the environment is found out once, and no user of a `.netrc` is taken for the server's.

    aiohttp would look for both at each request, in a thread, and fail where such a user meets a token.
    """
    rest = api.rest_client
    connector = rest.pool_manager.connector
    rest.pool_manager.detach()
    rest.pool_manager = aiohttp.ClientSession(connector=connector, trust_env=False, read_bufsize=READ_BUFFER)
    rest.proxy = rest.proxy or _proxy_of_environment(api.configuration.host)
    return api


def _proxy_of_environment(server: str) -> str | None:
    """As kubectl takes it: none for a server on the loopback, or one that $NO_PROXY names."""
    address = urlsplit(server)
    host = address.hostname or ""
    if host == "localhost" or _is_loopback(host) or proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    proxy = getproxies().get(address.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def namespace(origin: Origin) -> str:
    """The namespace in which the origin's user is at home: the pod's own, or the context's; else `default`.

    Reads files. Raises InputError.
    """
    if origin.files:
        return _context(origin)[1] or "default"
    return POD_NAMESPACE.read_text().strip() if POD_NAMESPACE.exists() else "default"


def _context(origin: Origin) -> tuple[str, str]:
    """The context to use, and its namespace: the given one, or the current one of the first file that has any.

    As kubectl does it. Refuses what makes the library fail without a message: not readable, not YAML, not a mapping, an
    unknown context.
    """
    contexts: dict[str, str] = {}
    current = ""
    for file in origin.files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: {getattr(error, 'strerror', None) or 'not a text file'}") from error
        tree = parsed(file, text)
        if not isinstance(tree, dict) or not any(isinstance(tree.get(key), list) for key in ("clusters", "contexts")):
            raise InputError(f"{file}: not a kubeconfig")
        for item in tree.get("contexts") or []:
            if isinstance(item, dict) and "name" in item:
                contexts.setdefault(str(item["name"]), _namespace(item.get("context")))
        current = current or str(tree.get("current-context") or "")
    wanted = origin.context or current
    if not wanted:
        raise InputError(
            f"{origin}: no current-context; --context takes one of {', '.join(contexts) or '(it has none)'}"
        )
    if wanted not in contexts:
        meant = did_you_mean(wanted, contexts)
        raise InputError(f"{origin}: no context {wanted}; it has {', '.join(contexts) or 'none'}{meant}")
    return wanted, contexts[wanted]


def _namespace(context: Any) -> str:
    """The namespace that a context of a kubeconfig names, "" where it names none."""
    return str(context.get("namespace") or "") if isinstance(context, dict) else ""


def _check_server(origin: Origin, server: str) -> None:
    """Raises InputError."""
    if "@" in server:  # messages and logs repeat it; no API server's URL has an @ elsewhere
        raise InputError(f"{origin}: the server's URL holds credentials; their place is a user of the kubeconfig")
    try:
        parts = urlsplit(server)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"{origin}: server {server!r} is not an http or https URL")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:256] or type(error).__name__
