"""How a command of ours is typed in another terminal.

In: the program that runs, the environment. Out: `underhost`, or its absolute path where another terminal would not
find it: a virtual environment that is active is so in this terminal only.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

NAME = "underhost"


def typed(program: str, environment: Mapping[str, str]) -> str:
    """The first word of the command; `program` is how this process was started."""
    active = environment.get("VIRTUAL_ENV")
    folders = [
        folder
        for folder in environment.get("PATH", "").split(os.pathsep)
        if not active or not Path(folder).is_relative_to(active)
    ]
    here = Path(program).absolute()
    found = shutil.which(NAME, path=os.pathsep.join(folders))
    if found is not None and Path(found).resolve() == here.resolve():
        return NAME
    return str(here)
