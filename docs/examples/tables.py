"""Pods, memory and findings of each ESXi host, the one with the most pods first: python tables.py DUMP INVENTORY."""

import sys
from pathlib import Path

import polars as pl

from underhost.agents.evaluate import tables
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.site.snapshot import Options
from underhost.agents.snapshots.load import snapshot_of
from underhost.streams.files.reader import load_files

snapshot, _ = snapshot_of(load_files([Path(sys.argv[1])], inventory=Path(sys.argv[2])), manifests=False)
evaluator = Evaluator(Options())
findings = tables.findings(evaluator.update(snapshot).findings)
model = evaluator.state(snapshot).model
nodes, pods = tables.nodes(snapshot, model), tables.pods(model)

host = nodes["host"].gather(pods["node"])
placed = pods.select(pod="name", host=host)
wrong = findings.filter(pl.col("severity") == "physical").join(placed, on="pod")
running = tables.vms(snapshot).filter(pl.col("power") == "on")
print(
    tables.hosts(snapshot)
    .select("name", "id", "memory_mib")
    .join(running.group_by("host").agg(used_mib=pl.sum("memory_mib")), left_on="id", right_on="host", how="left")
    .join(placed.group_by("host").len("pods"), left_on="id", right_on="host", how="left")
    .join(wrong.group_by("host").len("findings"), left_on="id", right_on="host", how="left")
    .drop("id")
    .fill_null(0)
    .sort("pods", "name", descending=[True, False])
    .write_csv(),
    end="",
)
