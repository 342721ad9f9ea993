#!/usr/bin/env bash
# Builds the real parts that the tests marked `real` run against: build.sh CACHE_DIR, or only says where: --where CACHE_DIR
#
# Apache Kafka (jars from Maven Central), etcd, kube-apiserver, kube-controller-manager, kube-scheduler, KWOK and vcsim
# (the vCenter simulator), all by their package clients. Needs Go, Maven and a JDK 17 or newer; about 8 minutes on two
# cores from nothing, at once when this recipe has been built before: the folder is named by the recipe's contents.
# Kafka Connect is a part of its own in that folder, named by its own recipe: a change of it builds nothing else anew.
# Prints the folder on the last line.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
where=false
if [ "$1" = --where ]; then where=true; shift; fi
recipe=$(cd "$here" && find . -mindepth 2 -type f -not -path './connect/*' | LC_ALL=C sort | xargs sha256sum \
  | sha256sum | cut -c1-12)
bin=$(mkdir -p "$1" && cd "$1" && pwd)/parts-$recipe
connect=$bin/connect-$(sha256sum "$here/connect/pom.xml" | cut -c1-12)
if [ -e "$bin/complete" ] && { $where || [ -e "$connect/complete" ]; }; then echo "$bin"; exit 0; fi
if $where; then echo "not built yet: make parts" >&2; exit 3; fi

missing=()
for tool in go mvn java; do command -v "$tool" >/dev/null || missing+=("$tool"); done
if [ ${#missing[@]} -gt 0 ]; then
  echo "the real parts need Go, Maven and a JDK; missing here: ${missing[*]}" >&2
  exit 3
fi

mkdir -p "$bin"
step() { echo "  $1" >&2; shift; "$@" >&2; }
in_folder() { (cd "$1" && shift && "$@"); }
jars() { # FOLDER, TARGET
  mvn -q -B -f "$here/$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$2" -DincludeScope=runtime
}
if [ ! -e "$connect/complete" ]; then
  step "Kafka Connect" jars connect "$connect"
  touch "$connect/complete"
fi
if [ -e "$bin/complete" ]; then echo "$bin"; exit 0; fi
echo "building the real parts into $bin (once, about 8 minutes)" >&2
kwok() {
  cd "$here/kwok" && go build -o "$bin/kwok" sigs.k8s.io/kwok/cmd/kwok
  rm -rf "$bin/kwok-stages" && cp -r "$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage" "$bin/kwok-stages"
  chmod -R u+w "$bin/kwok-stages"
}
step "Kafka" jars kafka "$bin/kafka"
step "etcd" in_folder "$here/etcd" go build -o "$bin/etcd" .
step "vcsim" in_folder "$here/vcsim" go build -o "$bin/vcsim" .
step "KWOK" kwok
step "Kubernetes" in_folder "$here/kube" go build -o "$bin/" k8s.io/kubernetes/cmd/kube-apiserver \
  k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kube-controller-manager
touch "$bin/complete"
echo "$bin"
