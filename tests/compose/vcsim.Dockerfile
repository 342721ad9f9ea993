# A stand-in of what compose/vcsim.Dockerfile builds: the same program, built outside.
FROM debian:bookworm-slim
COPY vcsim /usr/local/bin/vcsim
USER 10001:10001
ENTRYPOINT ["vcsim", "-l", "0.0.0.0:8989"]
