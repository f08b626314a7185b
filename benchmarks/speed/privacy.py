"""python -m benchmarks.speed.privacy: CPU time of a round with [privacy], over that of the same round without.

FedAvg with 5 full-gradient steps on logistic loss, 1,000 clients × 10 samples × 10,000 features, all in every round.
Rows are settings of [privacy], the last ones under [masks]; their ratio is over the plain round, and for masks also
over the masked round without noise. All run in the same process in turn; the best repetition of each counts. The
ratios are of whole rounds, evaluations of every tenth included.

With ``--busy`` the same is measured with a copy on each core at once, after the measurement alone: ``busy`` is the
ratio of the copy that has the worst, and ``quoted`` the worse of alone and busy.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.speed.measuring import Table, everyone, figure, parser, quoted
from benchmarks.speed.rounds import FULL, MU, ours
from mpifed.experiment import config

PRIVATE = {"clip": 0.1, "noise_multiplier": 1.0}
MASKS = {"masks": {"sums": "fixed-point", "bits": 32, "fraction": 16}}
# name -> more words of a study, and the row that it is compared with beside the plain one
ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "plain": ({}, ""),
    "gaussian": ({"privacy": PRIVATE}, ""),
    "with a seed": ({"privacy": PRIVATE | {"noise_seed": 1}}, ""),
    "quantile": ({"privacy": PRIVATE | {"quantile": 0.5}}, ""),
    "masked": (MASKS, ""),
    "distributed": (MASKS | {"privacy": PRIVATE | {"mechanism": "distributed-discrete-gaussian"}}, "masked"),
}


SAMPLES, FEATURES = 10, 10_000


def prepare(clients: int, rounds: int) -> Callable[[], dict[str, float]]:
    """A repetition, to be run: CPU seconds of a round of each row."""
    table = {
        "rounds": rounds,
        "data": {"name": "gaussian", "clients": clients, "samples": SAMPLES, "features": FEATURES},
        "problem": {"name": "logistic", "mu": MU},
        "evaluate": {"every": 10},
        "stop": {"gradient": 0.0, "diverged": 0},
        "algorithm": FULL,
        "selection": {"name": "all"},
    }
    studies = {name: config.experiment(table | words) for name, (words, _) in ROWS.items()}
    return lambda: {name: ours(study)[0] for name, study in studies.items()}


def ratios(copies: list[list[dict[str, float]]], name: str, beside: str) -> list[float]:
    """The ratios of the best repetitions of two rows, of each copy."""
    return [min(one[name] for one in own) / min(one[beside] for one in own) for own in copies]


def main() -> None:
    options: dict[str, Any] = {"clients": [1000], "rounds": 10, "repeat": 3}
    args = parser(__doc__, **options, busy=False, to=None).parse_args()
    columns = {"row": 12, "ms": 7, "alone": 6} | ({"busy": 6, "quoted": 6} if args.busy else {})
    table = Table(columns | {"over masked": 11}, args.to and args.to / "privacy.csv")
    copies = everyone(partial(prepare, args.clients[0], args.rounds), args)
    for name, (_, beside) in ROWS.items():
        more = figure(max(ratios(copies, name, beside))) if beside else None
        milliseconds = figure(1e3 * min(one[name] for one in copies[0]))
        table.row(name, milliseconds, *quoted(ratios(copies, name, "plain")), more)


if __name__ == "__main__":
    main()
