"""One real Kafka broker on loopback, on ports of its own, its state in a folder of the test.

Three brokers that make one cluster are in `brokers.py`.
"""

import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from support.processes.ports import free_ports

PROPERTIES = """
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={state}/kafka-logs
offsets.topic.replication.factor={copies}
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
"""


HEAP = ("-Xmx384m", "-XX:+UseSerialGC")
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


AUTHORIZED = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
"""Nobody may do anything but whom an ACL allows it, and who comes by the broker's own listener."""

AUDIT = """
rootLogger.level=INFO
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=[%d] %p %m (%c)%n
appender.audit.type=File
appender.audit.name=audit
appender.audit.fileName={file}
appender.audit.layout.type=PatternLayout
appender.audit.layout.pattern=%m%n
logger.audit.name=kafka.authorizer.logger
logger.audit.level=DEBUG
logger.audit.additivity=false
logger.audit.appenderRef.audit.ref=audit
"""
"""What the authorizer has answered to whom, a line each."""


class Secured(NamedTuple):
    """A listener with TLS and SCRAM: the broker's key and certificates in one PEM, its users and their one password.

    `authorized`: what they may do is in ACLs, and every answer of the authorizer is in `KafkaProcess.audit`.
    """

    pem: Path
    username: str
    password: str
    others: tuple[str, ...] = ()
    authorized: bool = False


class Place(NamedTuple):
    """Where a broker is in its cluster: its number, from 0, and the ports of every member, in order."""

    number: int
    brokers: Sequence[int]
    controllers: Sequence[int]


class KafkaProcess:
    """A broker; `address` is its bootstrap server. `kill` and `start` keep the state."""

    def __init__(self, state: Path, parts: Path, secured: Secured | None = None, place: Place | None = None) -> None:
        """Without a `place` it is a cluster of its own, and formatted."""
        broker, inner, controller = free_ports(3)
        state.mkdir(parents=True, exist_ok=True)
        number, brokers, controllers = place or Place(0, [broker], [controller])
        self.state, self.broker = state, brokers[number]
        self.address, self.inner = f"127.0.0.1:{self.broker}", f"127.0.0.1:{inner}"
        self.audit = state / "authorizer.log"
        self._jars = f"{parts}/kafka/*"
        self._properties = state / "kafka.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self._users: list[str] = []
        ports = {"broker": self.broker, "controller": controllers[number]}
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in enumerate(controllers, 1))
        lines = PROPERTIES.format(**ports, node=number + 1, voters=voters, copies=len(controllers), state=state)
        if secured is not None:
            lines += SECURED.format(**ports, inner=inner, pem=secured.pem)
            for name in (secured.username, *secured.others):
                self._users += ["--add-scram", f"SCRAM-SHA-512=[name={name},password={secured.password}]"]
        if secured is not None and secured.authorized:
            lines += AUTHORIZED
            (state / "log4j2.properties").write_text(AUDIT.format(file=self.audit))
        self._properties.write_text(lines)
        if place is None:
            self.format()

    def format(self) -> None:
        """Make its empty log, once, before the first start."""
        tool = ["java", "-cp", self._jars, "kafka.tools.StorageTool", "format", "-t", "underhost-tests-000000"]
        subprocess.run([*tool, *self._users, "-c", str(self._properties)], check=True, capture_output=True)

    def start(self, timeout: float = 180) -> None:
        """Start, and return when the port answers."""
        self.begin()
        self.wait(timeout)

    def begin(self) -> None:
        """Start, and do not wait for it: a member of a cluster needs the others before it answers."""
        with (self.state / "kafka.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["java", *self._logging(), *HEAP, "-cp", self._jars, "kafka.Kafka", str(self._properties)],
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _logging(self) -> list[str]:
        settings = self.state / "log4j2.properties"
        return [f"-Dlog4j2.configurationFile={settings}"] if settings.exists() else []

    def wait(self, timeout: float = 180) -> None:
        """Return when the port answers. Raises RuntimeError when it does not."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._running().poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.broker), 1).close()
                return
            except OSError:
                time.sleep(0.2)
        self.kill()
        raise RuntimeError(f"Kafka did not start, see {self.state}/kafka.log")

    @property
    def runs(self) -> bool:
        """Whether the process is there, be it paused."""
        return self._process is not None and self._process.poll() is None

    def pause(self) -> None:
        """Stop the process where it stands, as a host that hangs."""
        process = self._running()
        process.send_signal(signal.SIGSTOP)
        status = Path(f"/proc/{process.pid}/status")
        while "State:\tT" not in status.read_text():
            time.sleep(0.01)

    def resume(self) -> None:
        """Let it go on."""
        self._running().send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process hard, also one that is paused. Nothing where it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)

    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "it has not been started"
        return self._process
