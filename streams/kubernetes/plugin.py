"""The credentials' plugin of a kubeconfig, which ends with whoever waits for it.

In: what the library has read of the kubeconfig. Out: the `status` of the plugin's answer. The library's own run leaves
the process behind where the wait is given up: of a plugin that waits for somebody to sign in, hundreds in a night.
"""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any


async def run(provider: Any, previous_response: str | None = None) -> Any:
    """In the place of `ExecProvider.run`. Raises RuntimeError where the plugin fails, OSError where it is not there."""
    interactive = sys.stdout.isatty()
    spec = {"interactive": interactive} | ({"response": previous_response} if previous_response else {})
    asked = {"apiVersion": provider.api_version, "kind": "ExecCredential", "spec": spec}
    process = await asyncio.create_subprocess_exec(
        *provider.args,
        env={**provider.env, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=not interactive,  # one that may ask somebody keeps its terminal
    )
    try:
        stdout, stderr = await process.communicate()
    except asyncio.CancelledError:
        if not interactive:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a wrapper's own child as well
        # Kills it, and lets go of the pipes: asyncio takes no process for ended while a child of it holds one.
        process._transport.close()  # type: ignore[attr-defined]
        await process.wait()
        raise
    if process.returncode:
        said = stderr.strip().decode(errors="replace")
        raise RuntimeError(f"exec: process returned {process.returncode}{said and f'. {said}'}")
    return _status(stdout, provider.api_version)


def _status(text: bytes, version: str) -> Any:
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise RuntimeError(f"exec: failed to decode process output: {error}") from error
    if not isinstance(answer, dict) or not isinstance(answer.get("status"), dict) or "kind" not in answer:
        raise RuntimeError("exec: malformed response. it is no ExecCredential with a status")
    if answer.get("apiVersion") != version:
        raise RuntimeError(f"exec: plugin api version {answer.get('apiVersion')} does not match {version}")
    return answer["status"]
