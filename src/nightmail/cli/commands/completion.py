"""`nightmail completion`: the script by which a shell completes commands, options and profiles."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_NIGHTMAIL_COMPLETE"

SCRIPT_FILES = {
    "bash": "~/.local/share/bash-completion/completions/nightmail",
    "zsh": "~/.zfunc/_nightmail",
    "fish": "~/.config/fish/completions/nightmail.fish",
}


@click.command(
    "completion",
    short_help="Print a completion script for your shell.",
    epilog="\b\n" + "\n".join(f"  nightmail completion {shell} > {file}" for shell, file in SCRIPT_FILES.items()),
)
@click.argument("shell", type=click.Choice(list(SCRIPT_FILES)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and profiles in SHELL.

    For the running shell only: eval "$(nightmail completion bash)". For every new shell, write it to a file:
    """
    found = get_completion_class(shell)
    assert found is not None
    root = ctx.find_root().command
    click.echo(found(root, {}, "nightmail", VARIABLE).source())
