#!/bin/bash
# KAFKA_A_B=v as a.b=v, the storage formatted once, then the broker.
set -euo pipefail
env | sed -n 's/^KAFKA_//p' | while IFS='=' read -r name value; do
  printf '%s=%s\n' "$(tr '[:upper:]_' '[:lower:].' <<<"$name")" "$value"
done >/tmp/server.properties
java -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format --ignore-formatted -t underhost-stack-00000 -c /tmp/server.properties
exec java -Xmx384m -cp '/opt/kafka/libs/*' kafka.Kafka /tmp/server.properties
