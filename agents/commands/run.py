"""The options of `underhost run`; `handlers/run.py` does it."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.input.options import Topics, given, grouped
from underhost.agents.commands.output.help import KUBERNETES, VSPHERE, HelpedCommand
from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean

SINKS = {
    "labels": "labels",
    "pod-labels": "pod_labels",
    "bindings": "bindings",
    "drs-rules": "drs_rules",
    "events": "events",
    "reports": "reports",
}

AgentsOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Only these: kubernetes, vsphere, evaluator, labeller, pod-labeller, binder, drs, mover, evictor, events, "
        "reporter, alerts, web.",
        autocompletion=values.listed(values.roles),
    ),
]
EnableOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Sinks that may write: labels, pod-labels, bindings, drs-rules, events, reports.",
        autocompletion=values.listed(SINKS.keys),
    ),
]
EXAMPLES = """
# The cluster that kubectl asks, its page at http://127.0.0.1:8080; dry run
underhost run
# Cluster, vCenter, Kafka and sinks as a file says
underhost run --config underhost.yaml
# Label nodes with the host that they run on
underhost run --config underhost.yaml --enable labels
# Only the page, in a worker of its own
underhost run --config underhost.yaml --agents web --listen 127.0.0.1:8081
"""


class ClusterFlags(NamedTuple):
    """The Kubernetes side: the settings of that name."""

    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kubeconfig of the cluster.", rich_help_panel=KUBERNETES)
    ] = None
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Context of the kubeconfig.",
            autocompletion=values.contexts,
            rich_help_panel=KUBERNETES,
        ),
    ] = None
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "-f", "--filename", metavar="FILE", help="Dump, in the cluster's place.", rich_help_panel=KUBERNETES
        ),
    ] = None


class VCenterFlags(NamedTuple):
    """The vSphere side: the settings of that name."""

    vsphere_url: Annotated[
        str | None, typer.Option(metavar="URL", help="vCenter: https://HOST/sdk.", rich_help_panel=VSPHERE)
    ] = None
    vsphere_username: Annotated[
        str | None, typer.Option(metavar="NAME", help="vCenter user.", rich_help_panel=VSPHERE)
    ] = None
    vsphere_password_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Holds the password; read again when it changes.", rich_help_panel=VSPHERE),
    ] = None
    vsphere_ca_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certificates that vCenter's is checked against.", rich_help_panel=VSPHERE),
    ] = None
    vsphere_insecure: Annotated[
        bool | None,
        typer.Option("--vsphere-insecure", help="Do not check vCenter's certificate.", rich_help_panel=VSPHERE),
    ] = None
    inventory: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Inventory file, in the vCenter's place.", rich_help_panel=VSPHERE),
    ] = None


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Run the pipeline: watch, evaluate, act.")
    @grouped
    def run(
        *,
        where: Topics,
        site: Annotated[str | None, typer.Option(metavar="NAME", help="The site's name.")] = None,
        cluster: ClusterFlags,
        vcenter: VCenterFlags,
        agents: AgentsOption = None,
        enable: EnableOption = None,
        listen: Annotated[
            str | None,
            typer.Option("--listen", "--web", metavar="HOST:PORT", help="Page, API, metrics (127.0.0.1:8080)."),
        ] = None,
        verbose: Annotated[
            int, typer.Option("-v", "--verbose", count=True, show_default=False, help="Log more; twice for all.")
        ] = 0,
    ) -> None:
        """Run the pipeline: watch, evaluate, act (dry run unless a sink is enabled by name)."""
        groups: dict[str, dict[str, Any]] = {
            "kubernetes": {
                "kubeconfig": cluster.kubeconfig,
                "context": cluster.context,
                "files": cluster.files or None,
            },
            "vsphere": {
                "url": vcenter.vsphere_url,
                "username": vcenter.vsphere_username,
                "password_file": vcenter.vsphere_password_file,
                "ca_file": vcenter.vsphere_ca_file,
                "insecure": vcenter.vsphere_insecure,
                "inventory": vcenter.inventory,
            },
            "sinks": {name: True for name in enabled(enable)},
            "web": {"listen": listen},
        }
        named: dict[str, Any] = {name: flags for name, group in groups.items() if (flags := given(group))}
        if site is not None:
            named["site"] = site
        from underhost.agents.commands.handlers.run import handle  # heavy: only what runs needs it

        handle(where, named, agents, verbose)


def enabled(names: str | None) -> list[str]:
    """The settings' names of the sinks that `--enable` lists. Raises InputError for an unknown one."""
    listed = [name.strip() for name in (names or "").split(",") if name.strip()]
    unknown = [name for name in listed if name not in SINKS]
    if unknown:
        raise InputError(
            *(
                f"--enable: no sink {name!r}; there is: {', '.join(SINKS)}{did_you_mean(name, SINKS)}"
                for name in unknown
            )
        )
    return [SINKS[name] for name in listed]
