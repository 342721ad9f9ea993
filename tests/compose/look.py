"""Looks at the running stack from outside, as a person would: look.py NAME. Fails where something is not so."""

import asyncio
import json
import sys
import time
import urllib.request
from typing import Any

from aiokafka import AIOKafkaConsumer


def get(url: str) -> Any:
    """A decoded answer, or text where it is no JSON."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        body = answer.read().decode()
        return json.loads(body) if "json" in answer.headers.get("Content-Type", "") else body


def eventually(what: str, look: Any, seconds: float = 60) -> None:
    """Say that it is so as soon as it is; fail where it never is."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found = look()
        except OSError as error:
            found, why = None, str(error)
        else:
            why = "it is not so"
        if found:
            return print(f"  {what}: {found}", flush=True)
        if time.monotonic() > deadline:
            sys.exit(f"  {what}: {why}")
        time.sleep(0.5)


async def findings() -> list[str]:
    """The open findings that plain aiokafka reads from outside the stack."""
    consumer = AIOKafkaConsumer(
        "underhost.violations", bootstrap_servers="127.0.0.1:19092", auto_offset_reset="earliest"
    )
    found: dict[bytes, str] = {}
    async with consumer:
        for records in (await consumer.getmany(timeout_ms=5000)).values():
            for record in records:
                found.pop(record.key, None)
                if record.value is not None and json.loads(record.value)["state"] != "resolved":
                    found[record.key] = json.loads(record.value)["message"]
    return sorted(found.values())


def main(name: str) -> None:
    print(f"a look ({name}):")
    eventually("the page", lambda: "<title>" in get("http://127.0.0.1:8080/") and "served")
    eventually("the page of the demo", lambda: "<title>" in get("http://127.0.0.1:8081/") and "served")
    eventually("ready", lambda: get("http://127.0.0.1:8080/readyz")["status"] == "ok" and "yes")
    eventually("a finding, read from Kafka outside the stack", lambda: asyncio.run(findings())[:1])
    eventually(
        "Prometheus scrapes",
        lambda: [
            target["labels"]["job"]
            for target in get("http://127.0.0.1:9090/api/v1/targets")["data"]["activeTargets"]
            if target["health"] == "up"
        ].count("underhost"),
    )
    eventually(
        "rules that are well",
        lambda: sum(
            rule["health"] == "ok"
            for group in get("http://127.0.0.1:9090/api/v1/rules")["data"]["groups"]
            for rule in group["rules"]
        ),
    )
    eventually(
        "alerts at Alertmanager",
        lambda: sorted({alert["labels"]["alertname"] for alert in get("http://127.0.0.1:9093/api/v2/alerts")}),
    )


main(sys.argv[1])
