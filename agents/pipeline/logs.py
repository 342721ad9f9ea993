"""How a worker logs: one line an event on standard error, JSON off a terminal, readable on one; quiet unless asked.

In: the verbosity. Out: structlog and the standard library configured to one handler.
"""

import logging
import os
import sys
import threading
from collections.abc import MutableMapping
from typing import Any, TextIO

from underhost.streams.log import structlog

OWN = "underhost"
ALWAYS = "underhost.agents.worker", "underhost.agents.pipeline.leases.roles"
"""The loggers whose few lines (begin, ready, end; who acts instead of this worker) are of use to everybody."""
LIBRARIES = {"faust": logging.ERROR, "mode": logging.ERROR, "aiokafka": logging.CRITICAL, "asyncio": logging.ERROR}
"""How loud each is unless asked: what aiokafka cannot reach is said by us, in one line."""


def configure(verbosity: int, stream: TextIO | None = None) -> None:
    """0: warnings, and that it is ready; 1: what Underhost does; 2: that in detail, and what its libraries do."""
    out = stream or sys.stderr
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    if out.isatty():
        colors, plain = not os.environ.get("NO_COLOR"), structlog.dev.plain_traceback
        shown = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)
        last: list[Any] = [structlog.processors.format_exc_info, _printable, shown]
    else:
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(sort_keys=True)]
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OWN).setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])
    for name in ALWAYS:
        logging.getLogger(name).setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
    threading.excepthook = _thread_ended
    logging.captureWarnings(True)  # what Python warns of while a library is torn down is an event, too
    for name, level in LIBRARIES.items():
        logging.getLogger(name).setLevel((level, min(level, logging.WARNING), logging.INFO)[min(verbosity, 2)])


def hush() -> None:
    """From now on the libraries are silent: the worker ends, and what their tasks make of that is of no use."""
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        if not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.CRITICAL + 1)


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    """A thread of a library that ends with an exception (Kafka's, when the broker is gone) is one line, too."""
    name = ended.thread.name if ended.thread is not None else "a thread"
    kind = ended.exc_type.__name__
    detailed = logging.getLogger(OWN).isEnabledFor(logging.DEBUG)
    trace = (ended.exc_type, ended.exc_value, ended.exc_traceback) if detailed and ended.exc_value else None
    logging.getLogger(OWN).warning("%s ended: %s: %s", name, kind, ended.exc_value, exc_info=trace)


def _printable(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Names come from clusters whose tenants choose them: control characters never reach a terminal."""
    return {key: _clean(value) if isinstance(value, str) else value for key, value in event.items()}


def _clean(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
