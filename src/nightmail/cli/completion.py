"""`nightmail completion`: the script with which a shell completes commands, options and profiles."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_NIGHTMAIL_COMPLETE"

WHERE = {
    "bash": "~/.local/share/bash-completion/completions/nightmail",
    "zsh": "~/.zfunc/_nightmail",
    "fish": "~/.config/fish/completions/nightmail.fish",
}


@click.command(
    "completion",
    short_help="Print a script that completes commands in your shell.",
    epilog="\b\n" + "\n".join(f"  nightmail completion {shell} > {file}" for shell, file in WHERE.items()),
)
@click.argument("shell", type=click.Choice(list(WHERE)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and profiles in SHELL.

    For the running shell alone: eval "$(nightmail completion bash)". For good, write it where the shell looks:
    """
    found = get_completion_class(shell)
    assert found is not None
    root = ctx.find_root().command
    click.echo(found(root, {}, "nightmail", VARIABLE).source())
