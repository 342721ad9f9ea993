"""Polars schemas of the sweep's frames: column names and types live only here.

Made and read by `sweep_frames.py`; what leaves it are plain positions and findings.
"""

import polars as pl

POD, CLASS, DOMAIN, VALUE, SEPARATION, COUNT = "pod", "class", "domain", "value", "separation", "count"
OWNER, MATCH = "owner", "match"
OWNERS, MATCHED, BOTH, LEAST, MOST = "owners", "matched", "both", "least", "most"

# A running pod in a topology domain: position in `model.running`, id of its class, codes of the domain and of the value
# of the separation's own key (which is the domain where that key itself is judged).
PLACED = pl.Schema({POD: pl.UInt32, CLASS: pl.UInt32, DOMAIN: pl.Int32, VALUE: pl.Int32})

# A class in a separation: it carries the term, or the term selects it, or both.
SIDES = pl.Schema({SEPARATION: pl.UInt32, CLASS: pl.UInt32, OWNER: pl.Boolean, MATCH: pl.Boolean})

# A pod in a (separation, domain) that holds pods which the separation keeps apart.
MET = pl.Schema(
    {SEPARATION: pl.UInt32, DOMAIN: pl.Int32, VALUE: pl.Int32, POD: pl.UInt32, OWNER: pl.Boolean, MATCH: pl.Boolean}
)
