"""`--help` as kubectl has it: what a command does, examples to copy, then its options in groups.

In: a command's help text, its epilog (the examples) and the panels of its options. Out: the text of `--help`.
"""

from typing import Any

from typer.core import TyperCommand, TyperGroup

OTHERS = "Options"
INPUT, PODS, JUDGING, ANSWER = "Input", "Which pods", "How it is judged", "Answer"
TOPICS, KUBERNETES, VSPHERE = "Topics", "Kubernetes", "vSphere"


class _Helped:
    """What commands and groups of them share."""

    epilog: str | None

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """The text, then the examples, line by line as they are written."""
        super().format_help_text(ctx, formatter)  # type: ignore[misc]
        if self.epilog:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}".rstrip() + "\n" for line in self.epilog.strip().splitlines()))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Nothing: the examples come first."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, and each group of options below its name; options of no group come last."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for one in self.get_params(ctx):  # type: ignore[attr-defined]
            record = one.get_help_record(ctx)
            if record is None:
                continue
            if one.param_type_name == "argument":
                sections["Arguments"].append((one.metavar or one.name.upper(), record[1]))
            else:
                sections.setdefault(one.rich_help_panel or OTHERS, []).append(record)
        sections[OTHERS] = sections.pop(OTHERS, [])
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class HelpedCommand(_Helped, TyperCommand):
    """A command with examples."""


class HelpedGroup(_Helped, TyperGroup):
    """A group of commands with examples."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
