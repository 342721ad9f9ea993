"""Where the real parts are: built by tests/real/parts/build.sh into a cache outside the tree."""

import os
import subprocess
from functools import cache
from pathlib import Path

RECIPE = Path(__file__).parents[2] / "real" / "parts" / "build.sh"


@cache
def built_parts() -> tuple[Path | None, str]:
    """(folder, "") when the parts are built, else (None, why not in one line)."""
    cache_dir = os.environ.get("REAL_PARTS_CACHE") or str(Path.home() / ".cache" / "underhost")
    done = subprocess.run(["bash", str(RECIPE), "--where", cache_dir], capture_output=True, text=True)
    if done.returncode == 0:
        return Path(done.stdout.strip()), ""
    return None, done.stderr.strip() or "the real parts are not built"
