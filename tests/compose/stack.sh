#!/usr/bin/env bash
# Runs the compose stack for real, where no registry of images can be reached: stack.sh PARTS_FOLDER STATE_FOLDER
#
# Needs root, Debian's docker.io, iptables, mmdebstrap, kcat, Maven and Go. Docker Compose is built from its module and the
# base image from Debian's packages at first (10 minutes), and kept in STATE_FOLDER; nothing else of the machine is
# changed. Every image is made of Debian's packages and of the real parts of the tests; our own by its own Dockerfile,
# from a wheelhouse. Then: up, wait until everything is healthy, look at everything, restart, look again, down; last the
# image alone, as the manifests' pod has it. Prints a line for each thing that was seen, and fails at the first that is not.
set -euo pipefail
parts=$(cd "$1" && pwd) state=$(mkdir -p "$2" && cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
export DOCKER_HOST=unix://$state/docker.sock DOCKER_BUILDKIT=0
say() { printf '%s\n' "$*"; }

if ! docker info >/dev/null 2>&1; then
  dockerd --data-root "$state/data" --exec-root "$state/exec" -H "$DOCKER_HOST" --pidfile "$state/pid" \
    >"$state/dockerd.log" 2>&1 &
  engine=$!
  for _ in $(seq 150); do docker info >/dev/null 2>&1 && break; sleep 0.2; done
  docker info >/dev/null 2>&1 || { tail -n 5 "$state/dockerd.log" >&2; exit 1; }
fi
compose=$state/docker-compose
if [ ! -x "$compose" ]; then
  say "building Docker Compose"
  mkdir -p "$state/compose" && cp "$here/go.mod" "$here/go.sum" "$here/tools.go" "$state/compose/"
  (cd "$state/compose" && go build -o "$compose" github.com/docker/compose/v2/cmd)
fi
stack() { "$compose" --progress quiet -f "$root/compose/compose.yaml" --profile demo "$@"; }
ending() {
  stack down --volumes --timeout 20 >/dev/null 2>&1 || true
  if [ -n "${engine:-}" ]; then
    kill "$engine" && wait "$engine" || true
    umount "$state"/exec/netns/* 2>/dev/null || true # the engine leaves it mounted, and the folder could not be removed
  fi
}
trap ending EXIT

if [ ! -e "$state/base.tar" ]; then
  say "making the base image"
  mmdebstrap -q --variant=minbase bookworm "$state/new.tar" --include=\
ca-certificates,python3,python3-venv,python-is-python3,openjdk-17-jre-headless,prometheus,prometheus-alertmanager
  mv "$state/new.tar" "$state/base.tar"
fi
docker image inspect debian:bookworm-slim >/dev/null 2>&1 || docker import "$state/base.tar" debian:bookworm-slim >/dev/null
docker tag debian:bookworm-slim python:3.11-slim-bookworm
built() { # what `docker build` says is shown only where it fails
  docker build -q "$@" >"$state/build.log" 2>&1 || { cat "$state/build.log" >&2; exit 1; }
}
stand_in() { # NAME FOLDER: an image of this name, from the Dockerfile of the same name here and a folder
  built -f "$here/$2.Dockerfile" -t "$1" "$3"
}
mkdir -p "$state/kafka" && cp -r "$parts/kafka" "$state/kafka/" && cp "$here/kafka-start.sh" "$state/kafka/"
if [ ! -e "$state/kafka/kafka/kafka-tools-4.1.0.jar" ]; then # the broker's parts lack the command of the health check
  mvn -q -B dependency:copy -Dartifact=org.apache.kafka:kafka-tools:4.1.0 -DoutputDirectory="$state/kafka/kafka" \
    >"$state/mvn.log" 2>&1 || { cat "$state/mvn.log" >&2; exit 1; }
fi
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
# What compose/Dockerfile.dockerignore lets through; Debian's docker.io has no BuildKit that would read it.
mapfile -t sent < <(sed -n 's/^!//p' "$root/compose/Dockerfile.dockerignore")
tar -C "$root" -c --exclude=__pycache__ compose/Dockerfile "${sent[@]}" |
  built -f compose/Dockerfile -t underhost:0.1.0 -
say "images are built"

up() { stack up --detach --no-build --wait --wait-timeout 300; }
up
say "everything is healthy:"
stack ps --format '  {{.Service}} {{.Status}}'
"$root/.venv/bin/python" "$here/look.py" first
stack restart --timeout 20 underhost kafka >/dev/null
up
"$root/.venv/bin/python" "$here/look.py" again
docker inspect --format '{{.Config.User}} read-only={{.HostConfig.ReadonlyRootfs}}' underhost-underhost-1 | sed 's/^/underhost runs as /'
started=$(date +%s)
stack stop --timeout 20 underhost demo >/dev/null
codes=$(docker inspect --format '{{.State.ExitCode}}' underhost-underhost-1 underhost-demo-1 | tr '\n' ' ')
say "underhost and demo ended within $(($(date +%s) - started)) s, exit codes $codes"
[ "$codes" = "0 0 " ]
stack down --volumes --timeout 20 >/dev/null
say "down"
say "the image as the pod of compose/kubernetes/underhost.yaml, with a real API server:"
PYTHONPATH=$root/tests "$root/.venv/bin/python" "$here/pod.py" "$parts" "$state/pod"
