"""The command line: turns errors into exit statuses.

0 valid and every expectation met; 1 the run failed; 2 the scenario or the command line is wrong; 3 an expectation, a
target of `verify` or an aim of `bench` was not met; 4 invalid; 5 incomplete; 130 interrupted, data kept.

A command is loaded when it is called: `control` is to answer within a second, and drawing or theory alone take longer
to load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from testbed import FORM
from testbed.commands.options import errors
from testbed.errors import TOLD, InterruptError, told

# Each is the function of that name in the module of that name in `testbed.commands`.
COMMANDS = (
    "run",
    "check",
    "theory",
    "schema",
    "plot",
    "show",
    "compare",
    "control",
    "verify",
    "bench",
    "doctor",
    "compile",
)


def command_line(words: Sequence[str]) -> typer.Typer:
    """The command line, with the command that these words call; with all of them where they call none."""
    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="Distributed load balancing under delayed feedback, emulated with real processes or in virtual time.",
    )
    app.callback()(lambda: None)  # or a command alone would be called without its name
    called = next((word for word in words if not word.startswith("-")), "")
    for name in [called] if called in COMMANDS else COMMANDS:
        app.command(name)(getattr(import_module(f"testbed.commands.{name}"), name))
    return app


def main() -> None:
    """Run the command line; errors become one message and an exit status, never a traceback."""
    if FORM == "stale" and "compile" not in sys.argv[1:2]:
        errors.print(
            "a source has changed since the modules were compiled: the sources run (scripts/compile)"
        )
    try:
        command_line(sys.argv[1:])(standalone_mode=True)
    except TOLD as error:
        errors.print(told(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:  # while a command was loaded, or after it had ended
        sys.exit(InterruptError.exit_status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on; say nothing more
        sys.exit(1)


if __name__ == "__main__":
    main()
