"""The parts of aiokafka that we replace, wrap or rely upon are as they were when we compared them (decision 10).

Where one has changed: compare it with the module that uses it, run tests/real/kafka, and write the new digest here.
"""

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, conn
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.producer import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder, MessageAccumulator, MessageBatch
from aiokafka.producer.sender import Sender, SendProduceReqHandler
from aiokafka.producer.transaction_manager import TransactionManager
from support.sources import Parts, cases, digest_of

RELIED_UPON: Parts = {
    "changes": [
        (AIOKafkaClient.add_topic, "b054eda66291"),
        (BatchBuilder.append, "657d76f55157"),
        (MessageAccumulator._append_batch, "4762abfc42cb"),
        (MessageAccumulator.add_message, "56ff7e6c1918"),
        (MessageAccumulator.create_builder, "13dcd0ebf6b9"),
    ],
    "client": [
        (AIOKafkaClient.__init__, "edf3d0229560"),
        (AIOKafkaClient.bootstrap, "198943b004e5"),
        (AIOKafkaClient.close, "02119d4d618a"),
        (AIOKafkaClient.get_random_node, "0e2daf38b78e"),
        (AIOKafkaClient.send, "246b277687d7"),
        (AIOKafkaClient._get_conn, "68ce5d839171"),
        (AIOKafkaClient._metadata_update, "06dc51ed3e0d"),
        (AIOKafkaClient._on_connection_closed, "36f8c06a62fe"),
        (AIOKafkaConnection.send, "5909ea32f4ef"),
        (AIOKafkaConnection.close, "28f164aa1e4f"),
        (conn.create_conn, "673276cbddb4"),
    ],
    "identity": [
        (AIOKafkaProducer.send, "08ce81263f43"),
        (Sender._maybe_wait_for_pid, "577189636b56"),
        (Sender._send_produce_req, "aea01ae4b6c7"),
        (SendProduceReqHandler.do, "2dccd3d56b16"),
        (TransactionManager, "d0932794d69a"),
    ],
    "holding": [
        (MessageAccumulator.drain_by_nodes, "fc995afbfc57"),
        (MessageAccumulator.reenqueue, "f75f518a1ae2"),
        (MessageAccumulator.waiter, "052557b73c74"),
        (MessageAccumulator._pop_batch, "41cc98a298ef"),
        (MessageAccumulator._wakeup, "d99c7b551c9a"),
        (MessageBatch.expired, "3b28f15f56f2"),
        (MessageBatch.failure, "719b2122c318"),
        (Sender._sender_routine, "2380dc5e333d"),
    ],
    "consumer": [
        (AIOKafkaConsumer.start, "2f1ba7044332"),
        (GroupCoordinator._do_heartbeat, "dc1d6632aaa6"),
        (GroupCoordinator._push_error_to_user, "743ff515bd7e"),
        (GroupCoordinator._send_req, "fa4b12e914ce"),
        (GroupCoordinator.reset_generation, "537aa37c531b"),
        (SubscriptionState.fetcher_idle_time.fget, "45289bef04d7"),
    ],
    "transport": [
        (ClusterMetadata.update_metadata, "6c2cce8f96dc"),
        (Sender.close, "f60b3d023d25"),
        (Sender.sender_task.fget, "2aa81bcdcedb"),
    ],
}


@pytest.mark.parametrize(("module", "part", "digest"), cases(RELIED_UPON))
def test_what_we_rely_on_in_aiokafka_is_as_it_was(module: str, part: Callable[..., Any], digest: str) -> None:
    assert digest_of(part) == digest, f"compare it with streams/kafka/{module}.py"
