"""`underhost completion bash|zsh|fish`: the script that lets a shell complete commands, options and names.

In: a shell's name. Out: a script on standard output. It asks `underhost __complete` (`input/completing.py`) at every
tab, so that names of nodes, pods and hosts come from the dump or the cluster that the line is about. kubectl completes
`kubectl underhost` by itself: it finds `kubectl_complete-underhost` on PATH.
"""

from typing import Annotated

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.input.options import one_of
from underhost.agents.commands.output.help import HelpedCommand

BASH = r"""# bash completion of underhost: source <(underhost completion bash)
_underhost() {
    local out directive cur="${COMP_WORDS[COMP_CWORD]}" line
    out=$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
    directive="${out##*:}"
    out="${out%:*}"
    [[ $cur == "=" ]] && cur=""
    COMPREPLY=()
    while IFS= read -r line; do
        [[ -n $line ]] && COMPREPLY+=("$(printf '%q' "${line%%$'\t'*}")")
    done <<<"$out"
    if [[ ${#COMPREPLY[@]} -eq 0 && $directive == 0 ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
    fi
}
complete -F _underhost underhost
"""
ZSH = r"""#compdef underhost
# zsh completion of underhost: source <(underhost completion zsh), or a file _underhost in $fpath
_underhost() {
    local out directive line
    local -a lines offered
    out=$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null) || return 1
    lines=("${(@f)out}")
    directive="${lines[-1]#:}"
    lines[-1]=()
    for line in "${lines[@]}"; do
        if [[ $line == *$'\t'* ]]; then
            offered+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
        else
            offered+=("${line//:/\\:}")
        fi
    done
    if (( ${#offered} )); then
        _describe -V underhost offered
    elif [[ $directive == 0 ]]; then
        _files
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _underhost "$@"
else
    compdef _underhost underhost
fi
"""
FISH = r"""# fish completion of underhost: underhost completion fish | source
function __underhost_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l out (command $words[1] __complete $words[2..-1] 2>/dev/null)
    set -l directive $out[-1]
    set -e out[-1]
    if test (count $out) -eq 0 -a "$directive" = ":0"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $out
    end
end
complete -c underhost -f -a '(__underhost_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
EXAMPLES = """
# This shell
source <(underhost completion bash)
# Every zsh from now on
underhost completion zsh > ~/.zfunc/_underhost
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Print a shell's completion script.")
    def completion(
        shell: Annotated[
            str, typer.Argument(metavar="bash|zsh|fish", help="The shell.", autocompletion=values.one_of(list(SCRIPTS)))
        ],
    ) -> None:
        """Print a script that lets a shell complete commands, options and names: source <(underhost completion bash)"""
        one_of("completion:", shell, list(SCRIPTS))
        typer.echo(SCRIPTS[shell], nl=False)
