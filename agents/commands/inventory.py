"""The options of `underhost inventory`; `handlers/inventory.py` does it."""

from pathlib import Path
from typing import Annotated

import typer

from underhost.agents.commands.input.options import ConfigOption, given, one_of, output_option
from underhost.agents.commands.output.help import HelpedCommand

FORMATS = ("json", "yaml", "table")
EXAMPLES = """
# Of a vCenter
underhost inventory --url https://vcenter.example/sdk --username NAME \\
  --password-file ./password > inventory.json
# As a configuration names it
underhost inventory --config underhost.yaml -o table
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Write the inventory file of a vCenter.")
    def inventory(
        url: Annotated[str | None, typer.Option(metavar="URL", help="The vCenter: https://HOST/sdk.")] = None,
        username: Annotated[str | None, typer.Option(metavar="NAME", help="Its user; read rights are enough.")] = None,
        password_file: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="Holds the password; or UNDERHOST_VSPHERE__PASSWORD does."),
        ] = None,
        ca_file: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Certificates that the vCenter's is checked against.")
        ] = None,
        insecure: Annotated[bool, typer.Option("--insecure", help="Do not check the vCenter's certificate.")] = False,
        cluster: Annotated[
            list[str] | None, typer.Option(metavar="NAME", help="Only this vSphere cluster; repeatable.")
        ] = None,
        output: Annotated[str, output_option(FORMATS)] = "json",
        config: ConfigOption = None,
        watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on with what changes, until Ctrl-C.")] = False,
    ) -> None:
        """Write the inventory file of a vCenter: its hosts, VMs, clusters and VM-VM rules."""
        one_of("--output", output, FORMATS)
        flags = {
            "url": url,
            "username": username,
            "password_file": password_file,
            "ca_file": ca_file,
            "insecure": insecure or None,
            "clusters": cluster or None,
        }
        from underhost.agents.commands.handlers.inventory import handle  # heavy: only what runs needs it

        handle(given(flags), output, config, watch)
