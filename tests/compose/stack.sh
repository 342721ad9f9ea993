#!/usr/bin/env bash
# Runs the compose stack for real, where no registry of images can be reached: stack.sh PARTS_FOLDER STATE_FOLDER
#
# Needs root, Debian's docker.io, iptables and mmdebstrap, and Docker Compose (its Go module is built where it is not
# there). Every base image is made of Debian's own packages and of the real parts of the tests; our own image is built
# by its own Dockerfile, from a wheelhouse. Then: up, wait until everything is healthy, look at everything, restart,
# look again, down. Prints one line for each thing that was seen, and fails at the first that is not.
set -euo pipefail
parts=$(cd "$1" && pwd) state=$(mkdir -p "$2" && cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
export DOCKER_HOST=unix://$state/docker.sock
say() { printf '%s\n' "$*"; }

if ! docker info >/dev/null 2>&1; then
  dockerd --data-root "$state/data" --exec-root "$state/exec" -H "$DOCKER_HOST" --pidfile "$state/pid" \
    >"$state/dockerd.log" 2>&1 &
  engine=$!
  for _ in $(seq 100); do docker info >/dev/null 2>&1 && break; sleep 0.2; done
fi
compose=$state/docker-compose
if [ ! -x "$compose" ]; then
  say "building Docker Compose"
  mkdir -p "$state/compose" && cp "$here/go.mod" "$here/go.sum" "$here/tools.go" "$state/compose/"
  (cd "$state/compose" && go build -o "$compose" github.com/docker/compose/v2/cmd)
fi
stack() { "$compose" -f "$root/compose/compose.yaml" --profile demo "$@"; }
ending() {
  stack down --volumes --timeout 20 >/dev/null 2>&1 || true
  if [ -n "${engine:-}" ]; then kill "$engine" && wait "$engine" || true; fi
}
trap ending EXIT

if [ ! -e "$state/base.tar" ]; then
  say "making the base image"
  mmdebstrap -q --variant=minbase bookworm "$state/base.tar" --include=\
ca-certificates,python3,python3-venv,python-is-python3,openjdk-17-jre-headless,prometheus,prometheus-alertmanager
fi
docker import "$state/base.tar" python:3.11-slim-bookworm >/dev/null
docker tag python:3.11-slim-bookworm debian:bookworm-slim
stand_in() { # NAME FOLDER: an image of this name, from the Dockerfile of the same name here and a folder
  docker build -q -f "$here/$2.Dockerfile" -t "$1" "$3" >/dev/null
}
mkdir -p "$state/kafka" && cp -r "$parts/kafka" "$state/kafka/" && cp "$here/kafka-start.sh" "$state/kafka/"
mkdir -p "$state/vcsim" && cp "$parts/vcsim" "$state/vcsim/"
mkdir -p "$state/none"
stand_in apache/kafka:4.1.0 kafka "$state/kafka"
stand_in underhost-vcsim:0.1.0 vcsim "$state/vcsim"
stand_in prom/prometheus:v2.53.4 prometheus "$state/none"
stand_in prom/alertmanager:v0.28.0 alertmanager "$state/none"
if [ ! -d "$root/requirements/wheelhouse" ]; then
  "$root/.venv/bin/python" -m pip download --quiet --require-hashes -r "$root/requirements/run.txt" \
    -d "$root/requirements/wheelhouse"
fi
docker build -q -f "$root/compose/Dockerfile" -t underhost:0.1.0 "$root" >/dev/null
say "images are built"

stack up --detach --no-build --wait --wait-timeout 240
say "everything is healthy:"
stack ps --format '  {{.Service}} {{.Status}}'
"$root/.venv/bin/python" "$here/look.py" first
stack restart --timeout 20 underhost kafka >/dev/null
stack up --detach --no-build --wait --wait-timeout 240
"$root/.venv/bin/python" "$here/look.py" again
docker inspect --format '{{.Config.User}} read-only={{.HostConfig.ReadonlyRootfs}}' underhost-underhost-1 | sed 's/^/underhost runs as /'
started=$(date +%s)
stack stop --timeout 20 underhost demo >/dev/null
codes=$(docker inspect --format '{{.State.ExitCode}}' underhost-underhost-1 underhost-demo-1 | tr '\n' ' ')
say "underhost and demo ended within $(($(date +%s) - started)) s, exit codes $codes"
[ "$codes" = "0 0 " ]
stack down --volumes --timeout 20 >/dev/null
say "down"
