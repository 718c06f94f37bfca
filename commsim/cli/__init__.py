"""What does a person at the command line want to know? One file a command: read, call one function, print one table."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, TextIO, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from commsim import __version__
from commsim.errors import CommsimError, InputError, LackError, reason

COMMANDS = (
    "systems",
    "show",
    "cost",
    "tuner",
    "estimate",
    "search",
    "compare",
    "stragglers",
    "replay",
    "check",
    "calibrate",
    "validate",
    "bench",
    "launch",
    "lab",
)
"""Each is a function in the file of its name."""
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
OUR_MISTAKE = 70
"""Exit code when commsim itself is wrong (EX_SOFTWARE of sysexits.h): 1 means that a check failed."""


class Command(TyperCommand):
    """A command whose help fits 80 columns: its options one below the other, under the titles of their panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own classes are private
        """Write the arguments and options, in the order in which they are declared."""
        titled: dict[str, list[Any]] = {}
        for param in self.get_params(ctx):
            title = "Arguments" if param.param_type_name == "argument" else getattr(param, "rich_help_panel", None)
            titled.setdefault(title or "Options", []).append(param.get_help_record(ctx))
        for title, rows in titled.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class Commands(TyperGroup):
    """The commands; a command's file is imported when it is asked for, so that each costs only what it needs."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - typer's own class of contexts is private
        """Return the names in the order in which help shows them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002
        """Return the command of that name; InputError with the nearest one when there is none."""
        if cmd_name not in COMMANDS:
            raise InputError("command", cmd_name, "no such command", among=COMMANDS)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cmd_name, cls=Command)(getattr(import_module(f"commsim.cli.{cmd_name}"), cmd_name))
        return typer.main.get_command(app)


app = typer.Typer(cls=Commands, add_completion=False, no_args_is_help=True)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"commsim {__version__}")
        raise typer.Exit


@app.callback()
def commsim(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    """How long is a training step, and what should its network deliver?"""


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; whatever is wrong with the input is one line on stderr."""
    try:
        code = typer.main.get_command(app).main(arguments, "commsim", standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        return _complain(_usage(error, arguments), error.exit_code)
    except CommsimError as error:
        return _complain(str(error), error.exit_code)
    except typer.Abort:
        return 128 + signal.SIGINT
    except MemoryError:
        return _complain("this machine has too little memory for that; ask for fewer GPUs", LackError.exit_code)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is said in full and has an exit code of its own
        return _unforeseen(error)
    return code or 0


def _unforeseen(error: Exception) -> int:
    """Say that a disk is full, or that commsim is wrong and where; the exit code."""
    if isinstance(error, OSError) and error.errno in FULL:
        with suppress(OSError):  # what is left to be written must not fail again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _complain(f"the answer cannot be written: {reason(error)}", LackError.exit_code)
    traceback.print_exc()
    return _complain("this is a mistake in commsim; please report it with the lines above", OUR_MISTAKE)


def main() -> None:
    """Run the command line of this process and leave it."""
    if sys.stdin is None or sys.stdout is None:  # closed by whoever started it: nothing is read, nothing is told
        sys.stdin, sys.stdout = sys.stdin or _nothing("r"), sys.stdout or _nothing("w")
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `commsim systems | head` ends as quietly as any other tool
    sys.exit(run(sys.argv[1:]))


def _nothing(mode: str) -> TextIO:
    return cast("TextIO", open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123 - stays open to the end


def _complain(text: str, code: int) -> int:
    print(f"commsim: {' '.join(text.split())}", file=sys.stderr)  # noqa: T201 - stderr is where complaints belong
    return code


def _usage(error: TyperException, arguments: list[str]) -> str:
    """What is wrong with the arguments: where, what was given, what belongs there."""
    begun = arguments[0] if arguments and arguments[0] in COMMANDS else ""  # an option without its value has no ctx
    where = getattr(getattr(error, "ctx", None), "command_path", begun).removeprefix("commsim").strip()
    option = getattr(error, "param", None)
    if option is None or not option.help:
        said = error.format_message() or "a command is missing"
        return f"{where}: {said} (see `{f'commsim {where}'.strip()} --help`)".removeprefix(": ")
    given = [value for name in option.opts for value in _values(name, arguments)]
    said = f"{option.opts[-1]}: {given[-1]!r}; {error.message}" if given else error.format_message()
    return f"{where}: {_plain(said)} ({option.help.rstrip('. ')})"


_WORDS = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "a whole number belongs here",
    "Input should be a valid number, unable to parse string as a number": "a number belongs here",
    "Input should be": "it should be",
}
"""What the library of the command line says, and what is meant."""


def _plain(said: str) -> str:
    for theirs, ours in _WORDS.items():
        said = said.replace(theirs, ours)
    return said


def _values(option: str, arguments: list[str]) -> Iterator[str]:
    """What was given for an option, as `--option value` or `--option=value`."""
    for place, argument in enumerate(arguments):
        if argument.startswith(f"{option}="):
            yield argument.partition("=")[2]
        elif argument == option and place + 1 < len(arguments):
            yield arguments[place + 1]
