# The vCenter simulator of the tests: `docker build -f compose/vcsim.Dockerfile tests/real/parts/vcsim`.
FROM golang:1.25-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
RUN CGO_ENABLED=0 go build -o /vcsim .

FROM debian:bookworm-slim
COPY --from=build /vcsim /usr/local/bin/vcsim
USER 10001:10001
EXPOSE 8989
ENTRYPOINT ["vcsim", "-l", "0.0.0.0:8989"]
