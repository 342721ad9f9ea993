# A stand-in of apache/kafka: the same program, with the part of its start script that the stack uses.
FROM debian:bookworm-slim
COPY kafka /opt/kafka/libs
COPY kafka-start.sh /opt/kafka/start.sh
RUN mkdir -p /opt/kafka/bin /var/lib/kafka/data && useradd --uid 1000 appuser && chown -R 1000 /var/lib/kafka \
 && printf '#!/bin/sh\nexec java -cp "/opt/kafka/libs/*" org.apache.kafka.tools.BrokerApiVersionsCommand "$@"\n' \
    > /opt/kafka/bin/kafka-broker-api-versions.sh && chmod +x /opt/kafka/bin/*.sh /opt/kafka/start.sh
USER 1000
CMD ["/opt/kafka/start.sh"]
