"""What is wrong with the running pods of a site: every finding, the budgets' figures and a summary.

In: a snapshot and options. Out: a `Report`: the snapshot is compiled, and everything in it is judged.
"""

from underhost.agents.compiled.model import Model, compile
from underhost.agents.compiled.state import State
from underhost.agents.evaluate.judges import Judges
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Report


def check(snapshot: Snapshot, options: Options, model: Model | None = None) -> Report:
    """The report of a snapshot; `model` is the compiled snapshot, where the caller has it.

    Raises BadObjectError for an object that the API server would not have let in.
    """
    model = compile(snapshot, options) if model is None else model
    judges = Judges(model, State(model), options)
    judges.judge_all(snapshot)
    return judges.report(snapshot, len(model.running.keys) + len(model.pending) + len(model.unbound))
