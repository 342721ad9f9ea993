"""The options of `underhost topics`; `handlers/topics.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.input.options import Topics, grouped, one_of, output_option
from underhost.agents.commands.output.help import HelpedCommand
from underhost.schemas.errors import InputError

ASYNCAPI = "asyncapi"
FORMATS = ("table", "json", "yaml", "name", ASYNCAPI)
ASKS_NOTHING = ("table", "json", "yaml")
"""Formats of what is answered without Kafka."""
EXAMPLES = """
# All topics, with their partitions and records
underhost topics --bootstrap-servers kafka-1:9092
# One of them
underhost topics violations
# The rights that each role needs, for kafka-acls
underhost topics --acls --site prod-a
# Which sites would lie in one partition, and so on one worker
underhost topics --place prod-a,prod-b,edge-1
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES)
    @grouped
    def topics(
        *,
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="TOPIC",
                help="Describe this topic (`underhost.` may be left out); absent: list all.",
                autocompletion=values.topics,
            ),
        ] = None,
        acls: Annotated[
            bool, typer.Option("--acls", help="The rights of a Kafka user for each role, as kafka-acls takes them.")
        ] = False,
        agents: Annotated[
            str | None,
            typer.Option(
                metavar="A,B",
                help="With --acls: one user for a worker of these roles; resume and look are people's.",
                autocompletion=values.listed(values.roles),
            ),
        ] = None,
        site: Annotated[str | None, typer.Option(metavar="NAME", help="With --acls: the site of the workers.")] = None,
        principal: Annotated[
            str | None, typer.Option(metavar="TEXT", help="With --acls: who a role is (User:underhost-{role}).")
        ] = None,
        place: Annotated[
            str | None,
            typer.Option(metavar="SITE,…", help="Which of these sites lie in one partition, and what others would do."),
        ] = None,
        output: Annotated[str, output_option(FORMATS)] = "table",
        where: Topics,
    ) -> None:
        """List the topics as they are now, or describe one."""
        one_of("--output", output, FORMATS if place is None and not acls else ASKS_NOTHING)
        _check_question(acls, place, agents or site or principal)
        if acls:
            from underhost.agents.commands.handlers.acls import acls_text  # heavy: only what runs needs it

            typer.echo(acls_text(name, agents, site, principal, output, where), nl=False)
            return
        if place is not None:
            from underhost.agents.commands.handlers.place import handle as placing  # heavy: only what runs needs it

            placing(name, place, output, where)
            return
        if output == ASYNCAPI:
            from underhost.agents.commands.handlers.asyncapi import asyncapi_text  # heavy: only what runs needs it

            typer.echo(asyncapi_text(name), nl=False)
            return
        from underhost.agents.commands.handlers.topics import handle  # heavy: only what runs needs it

        handle(name, output, where)


def _check_question(acls: bool, place: str | None, whose: str | None) -> None:
    """Raises InputError where options belong to two questions."""
    if acls and place is not None:
        raise InputError("--acls and --place are two questions: ask one")
    if whose and not acls:
        raise InputError("--agents, --site and --principal say whose rights --acls prints")
