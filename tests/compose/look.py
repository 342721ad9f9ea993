"""Looks at the running stack from outside, as a person would: look.py NAME. Fails where something is not so."""

import json
import subprocess
import sys
import time
import urllib.request
from typing import Any


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


def records(topic: str) -> dict[str, Any]:
    """The newest record of each key, as kcat reads them from outside the stack."""
    command = [
        "kcat",
        "-q",
        "-C",
        "-e",
        "-o",
        "beginning",
        "-b",
        "127.0.0.1:19092",
        "-t",
        topic,
        "-Z",
        "-f",
        r"%k\t%s\n",
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    lines = (line.partition("\t") for line in said.stdout.splitlines())
    newest = {key: value for key, _, value in lines}
    return {key: json.loads(value) for key, value in newest.items() if value and value != "NULL"}


def findings(site: str) -> list[str]:
    """The open findings of a site."""
    found = records("underhost.violations").items()
    return sorted(one["message"] for key, one in found if key.startswith(f"{site}/") and one["state"] != "resolved")


def hosts_of_nodes(site: str) -> dict[str, str]:
    """The ESXi host of each node, once all four are known."""
    rows = records("underhost.node-hosts").items()
    found = {key.rpartition("/")[2]: str(row.get("hostName")) for key, row in rows if key.startswith(f"{site}/")}
    return found if len(found) == 4 else {}


def rules() -> int | None:
    """How many rules Prometheus has, once it has evaluated each without a fault."""
    groups = get("http://127.0.0.1:9090/api/v1/rules")["data"]["groups"]
    healths = [rule["health"] for group in groups for rule in group["rules"]]
    return len(healths) if set(healths) == {"ok"} else None


def main(name: str) -> None:
    print(f"a look ({name}):")
    eventually("the page", lambda: "<title>" in get("http://127.0.0.1:8080/") and "served")
    eventually("the page of the demo", lambda: "<title>" in get("http://127.0.0.1:8081/") and "served")
    eventually("ready", lambda: get("http://127.0.0.1:8080/readyz")["status"] == "ok" and "yes")
    eventually("where the nodes run, from vcsim through Kafka, read by kcat", lambda: hosts_of_nodes("compose"))
    eventually("a finding, read by kcat", lambda: findings("compose")[:1])
    eventually(
        "Prometheus scrapes",
        lambda: [
            target["labels"]["job"]
            for target in get("http://127.0.0.1:9090/api/v1/targets")["data"]["activeTargets"]
            if target["health"] == "up"
        ].count("underhost"),
    )
    eventually("rules, all of them well", rules)
    eventually(
        "alerts at Alertmanager",
        lambda: sorted({alert["labels"]["alertname"] for alert in get("http://127.0.0.1:9093/api/v2/alerts")}),
    )


main(sys.argv[1])
