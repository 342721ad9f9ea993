"""`--help` and the grammar as kubectl has them: what a command does, examples to copy, then its options in groups.

In: a command's help text, its epilog (the examples) and the panels of its options; the words of a line. Out: the text
of `--help`; the words as the parser takes them.
"""

import re
from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

from underhost.schemas.errors import InputError

OTHERS = "Options"
INPUT, PODS, JUDGING, ANSWER = "Input", "Which pods", "How it is judged", "Answer"
TOPICS, KUBERNETES, VSPHERE = "Topics", "Kubernetes", "vSphere"


_LEAST, _RANGE = re.compile(r"\bx>=(\d+)"), re.compile(r"(\d+)<=x<=(\d+)")
_HYPHEN = "\N{NON-BREAKING HYPHEN}"  # stands for one while lines are broken, which is done at hyphens, too


class _WholeWords:
    """A formatter of click's that breaks lines at blanks only, so that every name can be copied."""

    def __init__(self, formatter: Any) -> None:
        self._formatter = formatter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._formatter, name)

    def write_text(self, text: str) -> None:
        """A paragraph."""
        self._formatter.write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], *args: Any, **kwargs: Any) -> None:
        """Names, each with a text."""
        self._formatter.write_dl([(name, text.replace("-", _HYPHEN)) for name, text in rows], *args, **kwargs)


class _Helped:
    """What commands and groups of them share."""

    epilog: str | None

    def get_help(self, ctx: Any) -> str:
        """The whole text."""
        return str(super().get_help(ctx)).replace(_HYPHEN, "-")  # type: ignore[misc]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """All parts of it."""
        super().format_help(ctx, _WholeWords(formatter))  # type: ignore[misc]

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
                said = _RANGE.sub(r"from \1 to \2", _LEAST.sub(r"\1 or more", record[1]))
                sections.setdefault(one.rich_help_panel or OTHERS, []).append((record[0], said))
        sections[OTHERS] = sections.pop(OTHERS, [])
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class HelpedCommand(_Helped, TyperCommand):
    """A command with examples."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Of the words; `-o=name` is `-o name`, and `-Ao=name` is `-Ao name`, as kubectl has it."""
        return super().make_context(info_name, self._without_signs(args), parent, **extra)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever. Raises InputError for an option that is given nothing, and for a second inventory.

        What is given nothing a script has of a variable that is not set: it is not taken for an option left out.
        """
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        if not ctx.resilient_parsing:
            for one in order:
                value = given.get(str(one.name))
                if one.param_type_name == "option" and "" in (value if isinstance(value, list) else [value]):
                    kind, what = ("file", "the name") if one.metavar == "FILE" else ("value", "it")
                    raise InputError(f"{one.opts[0]}: a {kind} is expected, and {what} is empty")
            if sum(one.name == "inventory" for one in order) > 1:  # it would be the last one's word alone
                raise InputError("--inventory: given twice; one file holds the vSphere side")
        return super().parse_args(ctx, args)

    def _without_signs(self, args: list[str]) -> list[str]:
        options = [one for one in self.params if isinstance(one, TyperOption)]
        is_flag = {name: one.is_flag or one.count for one in options for name in one.opts}
        end = args.index("--") if "--" in args else len(args)
        words: list[str] = []
        for word in args[:end]:
            names, sign, value = word.partition("=")
            *before, last = (f"-{letter}" for letter in names[1:] or " ")
            is_short = names[:1] == "-" and all(map(is_flag.get, before)) and is_flag.get(last) is False
            words += [names, value] if sign and is_short else [word]
        return words + args[end:]


class HelpedGroup(_Helped, TyperGroup):
    """A group of commands with examples."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
