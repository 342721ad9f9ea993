"""`underhost topics --acls`: the rights of a Kafka user for each role, as lines for kafka-acls or as a document.

In: roles and a site. Out: text; nothing is asked of Kafka. Exit 0; 2 for an unknown role.
"""

import shlex
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output.documents import versioned
from underhost.agents.pipeline.rights import PRINCIPAL, USERS, Right, rights_of
from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean

TOOL = 'kafka-acls.sh --bootstrap-server "$BOOTSTRAP" --command-config "$ADMIN" --add'
HEAD = "# One user for each role, with the least rights. BOOTSTRAP: a broker; ADMIN: an administrator's settings."
Granted = list[tuple[str, list[Right]]]
"""Who may do what: the roles of one user, joined by commas, and the rights."""


def acls_text(
    topic: str | None, agents: str | None, site: str | None, principal: str | None, output: str, where: Topics
) -> str:
    """The rights, of all roles or of one user who has these. Raises InputError."""
    if topic is not None:
        raise InputError("--acls is of all topics: leave TOPIC out")
    template = principal or PRINCIPAL
    if ":" not in template or (agents is None and "{role}" not in template):
        raise InputError(f"--principal: {template!r} is not TYPE:NAME with {{role}} in it, as {PRINCIPAL}")
    settings = settings_of(where, **({"site": site} if site is not None else {}))
    users = [[role] for role in USERS] if agents is None else [_roles(agents)]
    granted = [(",".join(roles), rights_of(roles, settings.site)) for roles in users]
    if output == "table":
        return "\n".join([HEAD, *_lines(granted, template)]) + "\n"
    return versioned("Acls", {"site": settings.site, "acls": _fields(granted, template)}, output)


def _roles(agents: str) -> list[str]:
    names = [name.strip() for name in agents.split(",") if name.strip()]
    unknown = [name for name in names if name not in USERS]
    if not names:
        raise InputError("--agents: no role is named")
    if unknown:
        there = ", ".join(USERS)
        raise InputError(
            *(f"--agents: no user {name!r}; there is: {there}{did_you_mean(name, USERS)}" for name in unknown)
        )
    return [name for name in USERS if name in names]


def principal_of(roles: str, template: str) -> str:
    """Who a worker of these roles is."""
    return template.replace("{role}", roles.replace(",", "_"))


def _lines(granted: Granted, template: str) -> Iterator[str]:
    for roles, rights in granted:
        yield f"# {roles}"
        who = shlex.quote(principal_of(roles, template))
        for (kind, operations), named in groupby(sorted(rights, key=_alike), key=_alike):
            doing = " ".join(f"--operation {operation}" for operation in operations)
            on = " ".join(f"--{kind} {name}" for _, name, _ in named)
            yield f"{TOOL} --allow-principal {who} {doing} {on}"


def _alike(right: Right) -> tuple[str, Collection[str]]:
    return right.kind, right.operations


def _fields(granted: Granted, template: str) -> Iterable[dict[str, object]]:
    return [
        {
            "role": roles,
            "principal": principal_of(roles, template),
            "resourceType": right.kind,
            "name": right.name,
            "patternType": "literal",
            "host": "*",
            "operations": list(right.operations),
        }
        for roles, rights in granted
        for right in rights
    ]
