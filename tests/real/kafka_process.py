"""One real Kafka broker on loopback, on ports of its own, its state in a folder of the test."""

import signal
import socket
import subprocess
import time
from pathlib import Path

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


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class KafkaProcess:
    """A broker; `address` is its bootstrap server. `kill` and `start` keep the state."""

    def __init__(self, state: Path, parts: Path) -> None:
        self.state = state
        self.broker, controller = free_ports(2)
        self.address = f"127.0.0.1:{self.broker}"
        self._jars = f"{parts}/kafka/*"
        self._properties = state / "kafka.properties"
        state.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(PROPERTIES.format(broker=self.broker, controller=controller, state=state))
        tool = ["java", "-cp", self._jars, "kafka.tools.StorageTool", "format", "-t", "underhost-tests-000000"]
        subprocess.run([*tool, "-c", str(self._properties)], check=True, capture_output=True)

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
