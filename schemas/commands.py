"""The kinds of commands as they travel in `actions` and `outcomes`. A kind is spelled here and nowhere else.

Who decides a command and who carries it out is the table in `agents/sinks/registry.py`.
"""

from collections.abc import Mapping

LABEL, BIND, DRS_RULE, EVICT, EVENT, RESUME = "label", "bind", "drs-rule", "evict", "event", "resume"

SUBJECTS: Mapping[str, str] = {LABEL: "Node", BIND: "Pod", DRS_RULE: "DRS rule", EVICT: "Pod"}
"""What a sentence calls the target of a command, by kind; the others are called by their kind."""
