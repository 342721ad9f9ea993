"""kubernetes_asyncio without what nobody asks of it: its 700 models and APIs take 70 MiB and most of a second.

In: nothing. Out: its `config` and `client`. The library's packages import all of their modules; here they are entered
empty, with the few names that a connection needs, and filled the library's own way as soon as anybody asks for another
one. So each name of theirs is still there, and costs only those who use it.
"""

import importlib
import importlib.util
import logging
import sys
import threading
from types import ModuleType
from typing import Any

from underhost.streams.kubernetes import plugin

ROOT = "kubernetes_asyncio"
CLIENT, MODELS = f"{ROOT}.client", f"{ROOT}.client.models"


_loading = threading.Lock()


def load() -> tuple[Any, Any]:
    """(`config`, `client`), imported once; by any thread. Raises ImportError where the library is not there."""
    with _loading:
        if ROOT not in sys.modules:
            _enter(ROOT)
            entered = _enter(CLIENT)
            _enter(MODELS)
            entered.Configuration = importlib.import_module(f"{CLIENT}.configuration").Configuration
            entered.ApiClient = importlib.import_module(f"{CLIENT}.api_client").ApiClient
        from kubernetes_asyncio import client, config  # only now: the packages are there

        config.kube_config.ExecProvider.run = plugin.run
    # It logs what it also raises; we report it once.
    logging.getLogger(ROOT).setLevel(logging.CRITICAL)
    return config, client


def _enter(name: str) -> Any:
    """A package of the library that is empty until a name is asked of it that it lacks."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = _Later(name)
    described = {"spec": spec, "loader": spec.loader, "file": spec.origin, "package": name}
    described["path"] = spec.submodule_search_locations
    vars(module).update({f"__{what}__": value for what, value in described.items()})
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module


class _Later(ModuleType):
    """A package that is executed when a name is asked of it that it does not have yet."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__dict__["__spec__"]
        if self.__dict__.get("__executed__", False):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        self.__dict__["__executed__"] = True
        spec.loader.exec_module(self)
        return getattr(self, name)
