# A stand-in of prom/prometheus: Debian's.
FROM debian:bookworm-slim
RUN mkdir -p /prometheus && chown 65534:65534 /prometheus
USER 65534:65534
ENTRYPOINT ["/usr/bin/prometheus"]
