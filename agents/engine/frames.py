"""Polars schemas of the sweep's frames: column names and types live only here.

Made and read by `sweep.py`; what leaves it are plain positions and findings.
"""

import polars as pl

POD, CLASS, DOMAIN, SEPARATION, COUNT = "pod", "class", "domain", "separation", "count"
OWNERS, MATCHED, BOTH = "owners", "matched", "both"

# A running pod in a topology domain: position in `model.running`, id of its class, code of the domain.
PLACED = pl.Schema({POD: pl.UInt32, CLASS: pl.UInt32, DOMAIN: pl.Int32})

# A class on one side of a separation: it carries the term, or the term selects it.
SIDE = pl.Schema({SEPARATION: pl.UInt32, CLASS: pl.UInt32})

# Pods that share a domain although the separation keeps them apart.
MET = pl.Schema({SEPARATION: pl.UInt32, DOMAIN: pl.Int32, POD: pl.UInt32})
