"""The study of a slip as words of a command, and the one sentence that it is answered with."""

from mpifed.cli.main import main


def words(where, slip, file):
    """The settings of a study of which the last, key:Class, names a class of ``file`` with its slip."""
    *settings, last = where.split()
    key, _, name = last.partition(":")
    return [*settings, f"{key}={file}:{name}", *([f"{key}.slip={slip}"] if slip else [])]


def told(command, capsys):
    """What a command says that is refused: one sentence."""
    assert main(command) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("mpifed: ")]
    assert len(said) == 1
    return said[0].removeprefix("mpifed: ")
