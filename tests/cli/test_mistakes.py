"""A word that is no command, no option, no file and no override is answered by what was meant."""

import pytest

from tests.helpers.commands import mpifed

NEITHER = "neither an experiment file nor KEY=VALUE, such as algorithm.k0=5"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--rounds 5", "--rounds is a key of the experiment, not an option: write rounds=5"),
        ("run --rounds=5", "--rounds is a key of the experiment, not an option: write rounds=5"),
        ("run -rounds 5", "-rounds is a key of the experiment, not an option: write rounds=5"),
        ("run --rounds", "--rounds is a key of the experiment, not an option: write rounds=VALUE"),
        ("run --rounds -q", "--rounds is a key of the experiment, not an option: write rounds=VALUE"),
        ("run --algorithm.k0 5", "--algorithm.k0 is a key of the experiment, not an option: write algorithm.k0=5"),
        ("run --k0 5", "--k0 is a key of the experiment, not an option: write algorithm.k0=5"),
        ("run --clients 5 seed=1", "--clients is a key of the experiment, not an option: write data.clients=5"),
        ("sweep --seed 5", "--seed is a key of the experiment, not an option: write seed=5"),
        ("resume out.h5 --rounds 9", "--rounds is a key of the experiment, not an option: write rounds=9"),
        ("run --forse", "run has no option --forse; did you mean --force?"),
        ("run -x", "run has no option -x; `python -m mpifed run --help` lists the options"),
        ("show --rounds 5 x.h5", "show has no option --rounds; `python -m mpifed show --help` lists the options"),
        ("list data problems", "list takes no argument 'problems': `python -m mpifed list --help` says what it takes"),
        ("runn study.toml", "unknown command 'runn'; did you mean 'run'?"),
        ("shwo out.h5", "unknown command 'shwo'; did you mean 'show'?"),
        ("help", "unknown command 'help'; did you mean '--help'?"),
        ("run runn", f"'runn' is {NEITHER}"),
        ("sweep study --grid seed=0:3", f"'study' is {NEITHER}"),
        ("run rounds 5", "'rounds' is a key, and a key needs a value: write rounds=5"),
        ("run rounds seed=1", "'rounds' is a key, and a key needs a value: write rounds=VALUE"),
        ("resume out.h5 rounds 60", "'rounds' is a key, and a key needs a value: write rounds=60"),
        ("run clients=5", "unknown key 'clients'; write data.clients=5"),
        ("k0=5", "unknown key 'k0'; write algorithm.k0=5"),
        ("run fedavg", "'fedavg' is not an experiment file: write algorithm=fedavg"),
        ("digits", "'digits' is not an experiment file: write data=digits"),
        ("run nowhere/study", "experiment file 'nowhere/study' cannot be read: No such file or directory"),
        ("study.toml", "experiment file 'study.toml' cannot be read: No such file or directory"),
        (
            "out.h5",
            "'out.h5' is a result file, not an experiment file: `resume` goes on with its run, `show` prints its "
            "summary",
        ),
        ("resume", "the following arguments are required: result"),
        ("sweep --grid seed=0:2 -j two", "--jobs two is wrong: it must be a whole number"),
    ],
)
def test_the_answer_says_what_to_write(line, told, tmp_path):
    done = mpifed(*line.split(), cwd=tmp_path)
    assert (done.code, done.out, done.err) == (2, "", f"mpifed: {told}\n")
    assert not list(tmp_path.iterdir())


def test_what_is_like_nothing_is_told_all_three(tmp_path):
    done = mpifed("foo", cwd=tmp_path)
    assert done.code == 2
    assert done.err.startswith("mpifed: 'foo' is neither a command (run, resume, sweep, ")
    assert done.err.endswith(") nor an experiment file nor KEY=VALUE, such as algorithm.k0=5\n")


def test_an_experiment_file_may_have_any_name(tmp_path):
    (tmp_path / "runn").write_text("rounds = 1\ndata.clients = 3\ndata.features = 2")
    assert mpifed("runn", "-q", "-o", "out.h5", cwd=tmp_path).code == 0
    assert mpifed("run", "runn", "-q", "-o", "again.h5", cwd=tmp_path).code == 0
