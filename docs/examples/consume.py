"""Print findings as they open, change and resolve: python consume.py BOOTSTRAP_SERVERS (needs aiokafka)."""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer


async def main(servers: str) -> None:
    # No group and from the beginning: the topic is compacted, so this is every open finding first, then what changes.
    consumer = AIOKafkaConsumer("underhost.violations", bootstrap_servers=servers, auto_offset_reset="earliest")
    async with consumer:
        async for record in consumer:
            if record.value is None:  # a tombstone: the finding was resolved in the record before
                continue
            finding = json.loads(record.value)
            print(finding["state"], finding["severity"], finding.get("pod", finding.get("node")), finding["message"])


asyncio.run(main(sys.argv[1]))
