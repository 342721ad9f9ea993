# A stand-in of prom/alertmanager: Debian's.
FROM debian:bookworm-slim
RUN mkdir -p /alertmanager && chown 65534:65534 /alertmanager
USER 65534:65534
ENTRYPOINT ["/usr/bin/prometheus-alertmanager"]
