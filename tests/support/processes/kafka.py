"""One real Kafka broker on loopback, on ports of its own, its state in a folder of the test."""

import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from support.processes.ports import free_ports

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={state}/kafka-logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
"""


SECURED = """
listeners=PLAINTEXT://127.0.0.1:{inner},SASL_SSL://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{inner},SASL_SSL://127.0.0.1:{broker}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location={pem}
"""
"""Read after the others: clients need TLS and a user; the broker's own requests go another way."""


class Secured(NamedTuple):
    """A listener with TLS and SCRAM: the broker's key and certificates in one PEM, and its only user."""

    pem: Path
    username: str
    password: str


class KafkaProcess:
    """A broker; `address` is its bootstrap server. `kill` and `start` keep the state."""

    def __init__(self, state: Path, parts: Path, secured: Secured | None = None) -> None:
        self.state = state
        self.broker, inner, controller = free_ports(3)
        self.address = f"127.0.0.1:{self.broker}"
        self._jars = f"{parts}/kafka/*"
        self._properties = state / "kafka.properties"
        state.mkdir(parents=True, exist_ok=True)
        lines, users = PROPERTIES.format(broker=self.broker, controller=controller, state=state), []
        if secured is not None:
            lines += SECURED.format(broker=self.broker, inner=inner, controller=controller, pem=secured.pem)
            users = ["--add-scram", f"SCRAM-SHA-512=[name={secured.username},password={secured.password}]"]
        self._properties.write_text(lines)
        tool = ["java", "-cp", self._jars, "kafka.tools.StorageTool", "format", "-t", "underhost-tests-000000"]
        subprocess.run([*tool, *users, "-c", str(self._properties)], check=True, capture_output=True)

    def start(self, timeout: float = 180) -> None:
        """Start, and return when the port answers."""
        with (self.state / "kafka.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["java", "-Xmx384m", "-cp", self._jars, "kafka.Kafka", str(self._properties)],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.broker), 1).close()
                return
            except OSError:
                time.sleep(0.2)
        self.kill()
        raise RuntimeError(f"Kafka did not start, see {self.state}/kafka.log")

    def pause(self) -> None:
        """Stop the process where it stands, as a host that hangs."""
        self._process.send_signal(signal.SIGSTOP)
        status = Path(f"/proc/{self._process.pid}/status")
        while "State:\tT" not in status.read_text():
            time.sleep(0.01)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process hard."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait(20)
