"""What goes with what: each pair of settings that does not is refused in one sentence, before data are loaded."""

import math
import re

import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.core.errors import UserError
from mpifed.core.toml import flatten
from mpifed.data.dataset import Data
from mpifed.engine.listed import list_conflicts, make_features, refuse_study
from mpifed.experiment import config
from mpifed.features.conflict import Moment, explain_conflicts
from mpifed.features.conflicts import METHODS
from mpifed.federation.traits import Unsupported
from tests.helpers import traits
from tests.helpers.algorithm_cases import SERVED
from tests.helpers.algorithm_runs import build
from tests.helpers.commands import mpifed as command

STUDY = {"data": {"clients": 9, "features": 5}, "rounds": 2, "algorithm": "fedavg"}
SLOW = {"speed": {"name": "lognormal", "median": 100}, "latency": 0.01}
AWAY = {"system": SLOW, "asynchronous": {"arrivals": 3}}
DUAL = {"algorithm": "feddcd", "problem": {"name": "logistic", "mu": 0.1}, "data": {"name": "gaussian", "clients": 9}}
NODES = {"algorithm": "dgd", "graph": "ring"}
PRIVATE = {"algorithm": {"name": "fedepm", "noise": "clipped", "epsilon": 0.5, "k0": 2}}
SHARES = {"name": "distributed-discrete-gaussian"}
CLIENT_NOISE = {"privacy": {"noise_multiplier": 1, "mechanism": SHARES}, "masks": {"sums": "masked", "bits": 16}}
SHARED_NOISE = {"privacy": {"noise_multiplier": 1, "mechanism": {"name": "correlated-gaussian", "bands": 4}}}
SCORED = {"selection": {"name": "biased", "count": 2}}
NATURAL = {"compress": {"up": "natural"}}
TOPK = {"name": "topk", "k": 3}
UP, DOWN = {"compress": {"up": TOPK}}, {"compress": {"down": TOPK}}
EVERY = "needs a gradient of every client in every round, also of those that are not selected, so no client can be"
ABSENT = 'system.availability = {name = "random", probability = 0.3}'
STEPS = "system.partial = true is wrong: clients of {} cannot take fewer local steps, those of "
TURNS = "selection.overlap = 0 is wrong: {} exchanges within the selected clients alone, and 3 of 9 by turns are always"
NONE_ARRIVES = "asynchronous.arrivals = 3 is wrong"
ALL = {"algorithm": {"name": "fedavg", "aggregate": "all"}}
HOME = {"personal": ["x0"]}
NOISY = {"privacy": {"noise_multiplier": 1.0}}
UNFIT = "privacy cannot be used with {}, because {}"
DRAWN = {"name": "erdos-renyi", "redraw": True}
ALONE, POISSON = {"selection": "poisson"}, 'selection.name = "poisson" is wrong'
ODDS = {"name": "importance", "odds": [1.0] * 9}
SAMPLES, SAMPLED = {"objective": {"weights": "samples"}}, 'objective.weights = "samples" is wrong:'
THREE, THREES = {"objective": {"weights": [3, 1]}}, "objective.weights = [3.0, 1.0] is wrong:"
PENALTY = "objective.l1 = 0.01 is wrong: {} cannot take a penalty into account, because "

ATTACKED, ROBUST = {"attack": {"name": "random", "clients": 0.2}}, {"robust": "median"}
KRUM = {"robust": {"name": "krum", "share": 0.3}}


class OneMean(mpifed.algorithms.DGD):
    """Nodes that say that their uploads are used in one mean."""

    upload = mpifed.extend.Upload(one_mean={})


class Averaged(mpifed.algorithms.DGD):
    """Nodes that say that a server averages their models."""

    upload = mpifed.extend.Upload(averaged=True)


ON_RING = {"algorithm": f"{__name__}:OneMean", "graph": "ring"}

TOLD = [  # settings -> how the sentence begins
    ({"asynchronous": {"arrivals": 3}}, f"{NONE_ARRIVES} without a table [system]: who arrives first follows from"),
    (AWAY | {"algorithm": "scaffold"}, f"{NONE_ARRIVES}: scaffold cannot be asynchronous, because its rounds wait"),
    (AWAY | {"algorithm": "fedopt"}, f"{NONE_ARRIVES}: fedopt cannot be asynchronous, because Δ is the step"),
    (AWAY | NODES, f"{NONE_ARRIVES}: dgd cannot be asynchronous, because its nodes wait for their neighbours"),
    (AWAY | DUAL | {"asynchronous": {"arrivals": 1}}, "asynchronous.arrivals = 1 is wrong: feddcd needs at least 2"),
    (AWAY | {"selection": {"count": 4}}, "selection.count = 4 is wrong with [asynchronous]: all clients work, and"),
    (AWAY | {"selection": "cover"}, 'selection = "cover" is wrong with [asynchronous]: all clients'),
    (AWAY | {"masks": {}}, "masks cannot be used with [asynchronous]: clients agree on masks before"),
    (AWAY | {"compress": {"down": "natural"}}, 'compress.down = "natural" is wrong with [asynchronous]: compressed'),
    (AWAY | NATURAL | ALL, 'compress.up = "natural" is wrong with [asynchronous]: the server of fedavg keeps the last'),
    (AWAY | {"system": SLOW | {"deadline": 2}}, "system.deadline = 2.0 is wrong with [asynchronous]: there every"),
    (AWAY | {"system": SLOW | {"dropout": 0.1}}, "system.dropout = 0.1 is wrong with [asynchronous]"),
    (AWAY | {"system": SLOW | {"least": 2}}, "system.least = 2 is wrong with [asynchronous]"),
    (AWAY | {"system": SLOW | {"partial": True}}, "system.partial = true is wrong with [asynchronous]"),
    ({"algorithm": "fedgia", "problem": "svm"}, "fedgia cannot run on svm: it needs lipschitz"),
    ({"data": "quadratic", "algorithm": "flame"}, "algorithm.batch_size = 100 is wrong: quadratic has no mini-batches"),
    ({"data": "quadratic"} | SCORED, "selection.batch_size = 100 is wrong: quadratic has no mini-batches"),
    ({"evaluate": {"clients": True}}, "evaluate.clients = true is wrong: least-squares has neither classes nor"),
    ({"evaluate": {"unseen": 0.2}}, "evaluate.unseen = 0.2 is wrong: least-squares has neither classes nor a metric"),
    ({"problem": "softmax", "evaluate": {"clients": ["auc"]}}, "evaluate.clients names 'auc', which softmax does not"),
    ({"evaluate": {"unseen_steps": 3}}, "evaluate.unseen_steps has no effect without evaluate.unseen: leave it out"),
    ({"problem": "poisson", "evaluate": {"unseen": 2}}, "evaluate.unseen_step is missing: poisson tells no Lipschitz"),
    (
        {"data": {"name": "file", "path": "a.csv", "standardise": "federated"}, "problem": "softmax"}
        | {"evaluate": {"unseen": 2}},
        'data.standardise = "federated" is wrong with evaluate.unseen: sums would travel from clients that never take',
    ),
    ({"problem": {"name": "cnn", "augment": "flip"}}, "problem.augment is wrong: it changes samples of mini-batches"),
    ({"problem": {"name": "cnn", "autocast": "float16"}}, 'problem.autocast = "float16" is wrong with dtype = "float6'),
    ({"stop": {"accuracy": 0.9}}, "stop.accuracy = 0.9 is wrong: least-squares has no classes, so no accuracy is"),
    ({"stop": {"patience": 5}, "rounds": 4}, "stop.patience = 5 cannot end a run that is evaluated 5 times: lower it"),
    (
        {"data": {"name": "digits", "stratify": True}, "problem": "least-squares"},
        "data.stratify = true divides classes",
    ),
    ({"kernels": "torch", "problem": "mlp"}, 'kernels = "torch" is wrong: mlp does not compute with tensors on a devi'),
    ({"kernels": "cuda", "algorithm": "newton"}, 'kernels = "cuda" is wrong: newton needs the matrices ∇²f_i, which a'),
    ({"record": {"personal": True}}, "record.personal = true is wrong: fedavg has no personal models"),
    (HOME | {"algorithm": "gd"}, "personal is wrong: gd cannot leave parameters with the clients, because it does not"),
    (HOME | {"algorithm": "ditto"}, "personal is wrong: ditto cannot leave parameters with the clients, because its"),
    (HOME | ALL, "personal is wrong: fedavg cannot leave parameters with the clients, because it can only with algor"),
    (
        HOME | {"algorithm": {"name": "fedopt", "server": "fedexp"}},
        "personal is wrong: fedopt cannot leave parameters with the clients, because its clients upload a number here",
    ),
    (HOME | AWAY, "personal is wrong with [asynchronous]: clients join what they receive"),
    (HOME | {"algorithm": {"name": "fedavg", "certify": True}}, "algorithm.certify = true is wrong with personal"),
    (NOISY | {"algorithm": {"name": "fedavg", "certify": True}}, "algorithm.certify = true cannot be used with priv"),
    *[
        (NOISY | {"algorithm": name} | more, UNFIT.format(name, why))
        for name, why, more in (
            ("dgd", "it has no server, and noise is added to sums at a server; it can", {"graph": "ring"}),
            ("flame-dp", "its uploads have noise of their own; it can", {}),
            ("fedadmm", "its server adds up the last uploads of all clients, so that a round uses those of", {}),
            ("gd", "its clients upload gradients or compressed vectors, and what is clipped is a change", {}),
            ("newton", "its rounds ask more clients than those of one selection; it can", {}),
            (
                "proxskip",
                "what its clients exchange must add up to 0, which noise prevents; it can",
                {"problem": "logistic"},
            ),
            ("fednova", "its clients upload numbers beside their vectors, and the bound is one of vectors; it", {}),
        )
    ],
    (NOISY | AWAY, "privacy cannot be used with [asynchronous]: ε counts rounds whose clients are selected before"),
    (NOISY | NATURAL, 'compress.up = "natural" cannot be used with privacy: a compressor may make a clipped upload'),
    (
        NOISY | ROBUST,
        'robust = "median" cannot be used with privacy: the noise is sized for a sum, not for other means',
    ),
    (NOISY | ATTACKED, 'attack = "random" cannot be used with privacy: attackers would not clip their uploads'),
    (NOISY | {"selection": ODDS}, 'selection = "importance" cannot be used with privacy: it weights uploads by the od'),
    (NOISY | {"selection": "biased"}, 'selection = "biased" is wrong: it asks clients for exact numbers of their data'),
    (NODES | {"record": {"personal": True}}, "record.personal = true is wrong: dgd has no personal models"),
    ({"algorithm": "dgd"}, 'graph is missing: dgd has no server, so it needs a graph, such as graph = "ring"'),
    ({"graph": "ring"}, 'graph = "ring" is wrong: fedavg has a server; the methods on graphs are aug-dgm, beer, '),
    (NODES | NATURAL, "compress cannot be used with graph: nodes send their vectors as"),
    (NODES | {"masks": {}}, "masks cannot be used with graph: masks hide uploads from a server"),
    (NODES | {"selection": {"share": 0.3}}, 'selection = "uniform" is wrong: all nodes of dgd work in every round, so'),
    ({"algorithm": "extra", "graph": {"name": "ring", "loss": 0.2}}, "graph.loss = 0.2 is wrong: extra needs a graph"),
    ({"algorithm": "extra", "graph": DRAWN}, "graph.redraw = true is wrong: extra needs a graph that does not change"),
    (
        PRIVATE | SCORED,
        'selection = "biased" is wrong: it asks clients for exact numbers of their data, and these and the clients '
        "that it selects break the privacy that fedepm guarantees here, so it must be one that looks at no data, such "
        "as uniform, or without [privacy] importance with selection.odds that are known without the data",
    ),
    (
        PRIVATE | {"data": {"name": "file", "path": "a.csv", "standardise": "own"}},
        'data.standardise = "own" is wrong: one sample moves the mean and deviation of its client, and so all other',
    ),
    (
        {"privacy": CLIENT_NOISE["privacy"]},
        'privacy.mechanism = "distributed-discrete-gaussian" is wrong: clients send integers, which need masks',
    ),
    (CLIENT_NOISE | {"masks": {"sums": "masked"}}, "masks.bits = 64 is wrong with privacy.mechanism = "),
    (
        CLIENT_NOISE | {"privacy": CLIENT_NOISE["privacy"] | {"quantile": 0.5}},
        "privacy.quantile = 0.5 is wrong with privacy.mechanism = ",
    ),
    (
        {"privacy": SHARED_NOISE["privacy"] | {"quantile": 0.5}},
        'privacy.quantile = 0.5 is wrong with privacy.mechanism = "correlated-gaussian": noise of a round',
    ),
    (PRIVATE | {"dtype": "float32"}, 'dtype = "float32" is wrong: the privacy that fedepm guarantees here covers the'),
    ({"algorithm": "diana"} | NATURAL, 'compress.up = "natural" is wrong: diana needs exact'),
    (NODES | {"system": {"availability": 0.1}}, "system.availability is wrong with a table [graph]: nodes are always"),
    (NODES | {"system": {"dropout": 0.1}}, "system.dropout = 0.1 is wrong with a table [graph]: nodes do not drop"),
    (NODES | {"system": {"deadline": 2.0}}, "system.deadline = 2.0 is wrong with a table [graph]: no server waits"),
    (NODES | {"system": SLOW | {"partial": True}}, "system.partial = true is wrong with a table [graph]: without a"),
    ({"algorithm": "ef21"} | UP, 'compress.up = "topk" is wrong: ef21 needs exact uploads'),
    (DUAL | DOWN, 'compress.down = "topk" is wrong: feddcd needs exact downloads'),
    ({"algorithm": "newton"} | UP, 'compress.up = "topk" is wrong: newton needs exact uploads, because fednl is'),
    ({"algorithm": "fednl"} | DOWN, 'compress.down = "topk" is wrong: fednl needs exact downloads, because it'),
    ({"compress": {"up": {"name": "rank"}}}, 'compress.up = "rank" is wrong: '),
    ({"compress": {"feedback": "error"}}, 'compress.feedback = "error" is wrong: it is about compress.up'),
    (UP | {"masks": {}}, 'compress.up = "topk" cannot be used with masks'),
    (
        {"algorithm": "fedadmm", "compress": {"up": TOPK, "feedback": "none"}},
        'compress.feedback = "none" is wrong: the server of fedadmm keeps the last upload of every client',
    ),
    ({"algorithm": {"name": "diana", "compressor": "natural"}, "masks": {}}, "masks cannot be used with diana"),
    ({"algorithm": "fednl", "masks": {}}, "masks cannot be used with fednl: it compresses its uploads"),
    ({"algorithm": "fedepm", "masks": {}}, "masks cannot be used with fedepm: its server needs "),
    (
        {"algorithm": {"name": "sfedavg", "average": "new"}, "masks": {}},
        "masks cannot be used with sfedavg: its server needs ",
    ),
    ({"selection": "biased", "masks": {}}, "masks cannot be used with selection.name = 'biased': candidates send"),
    ({"algorithm": "fedgia", "system": {"dropout": 0.3}}, f"system.dropout = 0.3 is wrong: fedgia {EVERY}"),
    ({"algorithm": "fedgia", "system": {"deadline": 3}}, f"system.deadline = 3.0 is wrong: fedgia {EVERY}"),
    ({"algorithm": "fedgia", "system": {"availability": 0.3}}, f"{ABSENT} is wrong: fedgia {EVERY}"),
    (AWAY | {"algorithm": "malenia", "system": SLOW | {"availability": 0.3}}, f"{ABSENT} is wrong: malenia {EVERY}"),
    ({"system": {"availability": "diurnal"}}, 'system.availability = "diurnal" is wrong without system.speed'),
    ({"algorithm": "marina", "system": {"dropout": 0.3}}, "system.dropout = 0.3 is wrong: marina needs a gradient of"),
    (DUAL | {"system": {"speed": 9}}, "system.passes is missing: feddcd cannot tell beforehand how often its clients"),
    ({"stop": {"simulated_seconds": 9}}, "stop.simulated_seconds = 9.0 is wrong: time is simulated only with a table"),
    ({"system": {"partial": True, "speed": 9}}, "system.partial = true is wrong without system.deadline: clients"),
    ({"system": {"partial": True, "deadline": 9}}, "system.partial = true is wrong without system.speed: clients"),
    *[
        ({"algorithm": name, "system": {"partial": True, "speed": 9, "deadline": 9}}, STEPS.format(name))
        for name in ("scaffold", "ditto")
    ],
    (SAMPLES | {"masks": {}}, f"{SAMPLED} fedavg averages models with these weights, which only plain sums"),
    (SAMPLES | NATURAL, f"{SAMPLED} fedavg averages"),
    (SAMPLES | {"selection": ODDS}, f"{SAMPLED} fedavg averages"),
    (SAMPLES | PRIVATE, f"{SAMPLED} the noise of fedepm is that of uploads without weights"),
    (THREE | {"algorithm": {"name": "fedgia", "H": "gram"}}, f"{THREES} fedgia needs majorizer_inverse here, which ta"),
    (THREE | {"algorithm": {"name": "fedavg", "certify": True}}, f"{THREES} the theorem of fedavg is about equal wei"),
    *[
        ({"objective": {"l1": 0.01}, "algorithm": name} | more, PENALTY.format(name) + why)
        for name, why, more in (
            ("fedavg", "its server averages models that clients have trained on their f_i, without the penalt", {}),
            ("newton", "its steps are in the metric of Hessians, in which the proximal operator of a penalty", {}),
            ("fedgia", "mpifed has no proximal step for its server; ad-admm, fedadmm, gd, nesterov can", {}),
            ("lbfgs", "its steps are in the metric of past gradients, so they are no proximal steps", {}),
            ("dgd", "it has no server, which would take the proximal step", NODES),
        )
    ],
    ({"objective": {"l2": 1.0}, "algorithm": "ef21"}, "objective.l2 = 1.0 is wrong: ef21 cannot take a penalty into"),
    ({"objective": {"unpenalised": ["x0"]}}, "objective.unpenalised is wrong without objective.l1 and objective.l2"),
    (ATTACKED | {"algorithm": "scaffold"}, 'attack = "random" is wrong: scaffold does not say that its rounds use upl'),
    (
        ROBUST | {"algorithm": "newton"},
        'robust = "median" is wrong: newton does not say that its rounds use uploads in',
    ),
    (ROBUST | ALL, 'robust = "median" is wrong: fedavg does not say that its rounds use uploads in one mean alone; '),
    (
        ROBUST | {"algorithm": {"name": "fedopt", "server": "fedexp"}},
        'robust = "median" is wrong: clients of fedopt up',
    ),
    *[
        (table | more, f'{key} = "{name}" is wrong: {what} cannot be used with it, because ')
        for table, key, name in ((ATTACKED, "attack", "random"), (ROBUST, "robust", "median"))
        for more, what in (
            ({"masks": {}}, "masks"),
            (NATURAL, "compress"),
            (AWAY, "asynchronous"),
            (SAMPLES, "objective.weights"),
            ({"selection": ODDS}, 'selection = "importance"'),
            ({"algorithm": {"name": "fedavg", "certify": True}}, "algorithm.certify"),
            (ON_RING, "graph"),
        )
    ],
    (SAMPLES | ON_RING | {"algorithm": f"{__name__}:Averaged"}, f"{SAMPLED} {__name__}:Averaged says Upload(averaged="),
    (
        {"problem": "cox", "attack": "labels"},
        'attack = "labels" is wrong: cox takes times with a mark of censoring, wh',
    ),
    (PRIVATE | {"attack": "labels"}, 'attack = "labels" is wrong: attackers send uploads without the noise that fedep'),
    (
        ATTACKED | {"kernels": "torch"},
        'kernels = "torch" is wrong: attackers change their uploads in memory, so it mus',
    ),
    (ROBUST | {"kernels": "torch"}, 'kernels = "torch" is wrong: robust means are computed in memory, so it must be "'),
    (
        {"algorithm": "fedavg", "privacy": {"noise_multiplier": 1.0}, "kernels": "torch"},
        'kernels = "torch" is wrong: private means are computed in memory, so it must be "auto"',
    ),
    ({"problem": "mlp", "selection": {"name": "importance", "count": 2}}, "selection.odds is missing: mlp tells no"),
    ({"algorithm": "fednova", "selection": ODDS}, 'selection.name = "importance" is wrong: fednova needs equal'),
    *[
        ({"algorithm": name, "selection": "greedy"}, f'selection.name = "greedy" is wrong: clients of {name} have no')
        for name in ("fedavg", "fedgia")
    ],
]
LISTED = '{name = "list", values = [1.0, 2.0, 0.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]}'
SITES = {"problem": "logistic", "data": {"name": "gaussian", "clients": 9}}
ODDS_OF_NINE = {"name": "importance", "count": 2, "odds": [1.0] * 8}
COUNTS = [  # the same where the number of clients decides, and wrong values of keys that it decides about
    ({"system": {"least": 6}}, "system.least = 6 is wrong: it must be at most the 5 clients that a round selects"),
    ({"system": {"speed": "lognorml"}}, "unknown speed 'lognorml'; did you mean 'lognormal'?"),
    ({"system": {"speed": "lognormal"}}, "system.speed.median is missing: it has no default"),
    (
        {"system": {"speed": {"name": "pareto", "mean": 3}}},
        "unknown key 'system.speed.mean'; the choices are scale, shape; with system.speed.name = \"exponential\" there",
    ),
    ({"system": {"latency": math.inf}}, "system.latency.value = inf is wrong: it must be a finite number"),
    (
        {"system": {"speed": True}},
        "system.speed = true is wrong: it must be a number, a list with one for each client, or",
    ),
    (
        {"system": {"latency": [0.5, 0.85]}},
        'system.latency = {name = "list", values = [0.5, 0.85]} is wrong: it has 2 numbers, and there are 9 clients',
    ),
    (
        {"system": {"speed": [1, 2, 0, 4, 5, 6, 7, 8, 9]}},
        f"system.speed = {LISTED} is wrong: it must be above 0 and finite for every client, and client 2 has 0",
    ),
    (
        {"system": {"latency": "speeds.txt"}},
        'system.latency = {name = "file", path = "speeds.txt"} is wrong: \'speeds.txt\' cannot be read: No such file',
    ),
    (
        {"system": {"speed": {"name": "uniform", "low": 2, "high": 1}}},
        "system.speed: low = 2.0 is wrong: it must be at most high = 1.0",
    ),
    (
        {"system": {"speed": 0}},
        'system.speed = {name = "constant", value = 0.0} is wrong: it must be above 0 and finite for every client, and',
    ),
    ({"system": 3}, "system = 3 is wrong: system is a table, so write system.KEY = VALUE"),
    ({"selection": ODDS_OF_NINE}, "selection.odds has 8 numbers, but there are 9 clients: give one to each"),
    (
        {"selection": ODDS_OF_NINE | {"odds": [1.0] * 8 + [0.0]}},
        "the odds of client 8 are 0: selection.odds must be above",
    ),
    ({"selection": ODDS_OF_NINE | {"odds": [1.0] * 8 + [-2.0]}}, "the odds of client 8 are -2: selection.odds must be"),
    (
        {"selection": ODDS_OF_NINE | {"odds": [1.0] * 8 + [9.0], "power": 500.0}},
        "the largest odds are 1e+300 times the smallest: at most 1e+100 times is possible, so selection.power must be",
    ),
    (
        SITES | {"evaluate": {"unseen": 0.99}},
        "evaluate.unseen = 0.99 is wrong: of 9 clients 9 would never train, so leave",
    ),
    (
        SITES | {"evaluate": {"unseen": ["a"]}},
        "evaluate.unseen names client 'a', and clients have no names here: write the",
    ),
    (SITES | {"evaluate": {"unseen": [3, 9]}}, "evaluate.unseen names client 9, and there are the clients 0 to 8"),
    (SITES | {"evaluate": {"unseen": [*range(9)]}}, "evaluate.unseen names all 9 clients: at least one must train"),
    (
        {"evaluate": {"unseen": 1.5}},
        "evaluate: unseen = 1.5 is wrong: it must be a share below 1, a whole number or a li",
    ),
    (
        {"algorithm": {"name": "fedavg", "epochs": 1.5, "batch_size": 900, "last_batch": "drop"}},
        'algorithm.last_batch = "drop" leaves client ',
    ),
    (DUAL | {"selection": {"count": 1}}, "selection takes 1 client a round, but feddcd needs at least 2"),
    (NODES | {"graph": "torus", "data": {"clients": 7}}, 'graph = "torus" is wrong for 7 clients: they make one row'),
    (NODES | {"graph": {"name": "torus", "rows": 5}}, "graph.rows = 5 is wrong: it must divide the number of"),
    (AWAY | {"asynchronous": {"arrivals": 10}}, "asynchronous.arrivals = 10 is wrong: it must be between 1 and the 9"),
    ({"attack": {"clients": 10}}, "attack.clients = 10 is wrong: there are 9 clients, and no more can attack"),
    ({"attack": {"clients": [2, 9]}}, "attack.clients names client 9, and there are the clients 0 to 8"),
    ({"attack": {"clients": [2, 2]}}, "attack.clients names a client twice"),
    (KRUM | {"selection": {"count": 4}}, 'robust = "krum" is wrong: krum needs more than 2f + 2 = 4 uploads, f = 1 of'),
    ({"system": {"availability": 0.1}, "selection": "cover"}, 'selection.name = "cover" is wrong with system.availab'),
    (KRUM | {"system": {"dropout": 0.1, "least": 3}}, 'robust = "krum" is wrong: krum needs more than 2f + 2 = 4 upl'),
    ({"system": {}, "asynchronous": {}}, "asynchronous.arrivals = 1 is wrong: with this [system] client 0 takes no"),
    (
        SHARED_NOISE,
        'selection.name = "uniform" is wrong with privacy.mechanism = "correlated-gaussian": 4 rounds share',
    ),
    (SHARED_NOISE | {"selection": "cyclic"}, 'selection.name = "cyclic" is wrong with privacy.mechanism = "correlated'),
    ({"selection": {"name": "uniform", "count": 1}, "masks": {}}, "selection takes 1 client a round, but masks need"),
    ({"system": {"dropout": 0.2, "least": 3}, "masks": {}}, "system.least = 3 is wrong: with masks.threshold = 0.67 m"),
    *[
        (DUAL | {"algorithm": name, "selection": {"name": "cyclic", "count": 3}}, TURNS.format(name))
        for name in ("feddcd", "accfeddcd", "proxskip")
    ],
    *[
        (DUAL | ALONE | {"algorithm": name}, f"{POISSON}: {name} exchanges within the selected clients alone, so")
        for name in ("feddcd", "accfeddcd", "proxskip")
    ],
    (ALONE | {"algorithm": "fedgia"}, f"{POISSON}: fedgia asks clients that are not selected, too, so it must be one"),
    (ALONE | {"algorithm": "marina"}, f"{POISSON}: marina asks clients that are not selected, too, so it must be one"),
    (ALONE | {"algorithm": "newton"}, f"{POISSON}: newton asks clients that are not selected, too, so it must be one"),
    (ALONE | {"algorithm": "fedepm-graph", "graph": "ring"}, f"{POISSON}: nodes of a graph wait for their neighbours"),
    (ALONE | {"algorithm": {"name": "gd", "certify": True}}, f"{POISSON}: the theorems of algorithm.certify are about"),
    (
        ALONE | {"masks": {}},
        f"{POISSON}: masks hide no single upload, which a round may have, so it must be",
    ),
    (
        ALONE | KRUM,
        'robust = "krum" is wrong: krum needs more than 2f + 2 = 2 uploads, f = 0 of which may be wrong, and ',
    ),
]


def told(settings, path):
    """What a run is told, which writes nothing."""
    with pytest.raises(UserError) as error:
        mpifed.run(STUDY | settings, path=path / "out.h5", progress=None)
    assert not list(path.iterdir())
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(("settings", "sentence"), [*TOLD, *COUNTS])
def test_what_does_not_go_together_is_refused_before_data_are_loaded(settings, sentence, monkeypatch, tmp_path):
    """Or before round one, where it depends on the number of clients."""
    if (settings, sentence) not in COUNTS:
        for name in ("linreg-noniid", "gaussian", "quadratic"):
            monkeypatch.setattr(Data.member(name, "data"), "load", None)
    assert told(settings, tmp_path).startswith(sentence)


def test_every_conflict_is_broken_by_a_row(monkeypatch):
    monkeypatch.setattr(config, "refuse_study", lambda *_: None)
    studies = [config.experiment(STUDY | settings) for settings, _ in TOLD]
    judged = [(one, row) for one in studies for part in make_features(one) for row in part.conflicts]
    judged += [(one, row) for one in studies for row in METHODS]
    broken = {row.parts for one, row in judged if row.at is not Moment.DATA and [*explain_conflicts([row], one)]}
    assert broken == {row.parts for row in list_conflicts() if row.at is not Moment.DATA}


def test_what_goes_together_breaks_no_rule():
    for settings in ({}, AWAY, DUAL, NODES, PRIVATE, SCORED, {"masks": {}}, NATURAL):
        refuse_study(config.experiment(STUDY | settings))


def test_methods_that_are_named_instead_can(tmp_path):
    for settings, words, able in (
        (AWAY | {"algorithm": "scaffold"}, "call; (.*) can, and without", lambda method: method.asynchronous),
        ({"graph": "ring"}, "graphs are (.*); one of", lambda method: isinstance(method, GraphAlgorithm)),
    ):
        named = re.search(words, told(settings, tmp_path))[1].split(", ")
        assert named == [name for name in Algorithm.choices if able(Algorithm.member(name, "algorithm")())]


def test_the_command_says_it_and_so_does_the_dry_run_of_a_sweep(tmp_path):
    words = [f"{key}={value}" for key, value in flatten(STUDY | {"asynchronous": {"arrivals": 3}}).items()]
    sweep = ["sweep", *words, "--grid", "seed=0:3", "-o", tmp_path / "results", "--dry-run"]
    for line in (["run", *words], sweep):
        done = command(*line)
        assert (done.code, done.out) == (2, "")
        assert f"{NONE_ARRIVES} without a table [system]" in done.err
    assert command(*sweep, "system.speed=100").code == 0


SEEDED = {"algorithm": PRIVATE["algorithm"] | {"noise_seed": 3}}
FINE = [
    NODES | {"selection": "all"},
    NODES | {"graph": {"name": "ring", "loss": 0.3}},
    SEEDED | SCORED,
    SEEDED | {"dtype": "float32"},
    *(
        DUAL | {"selection": {"name": "cyclic"} | rule}
        for rule in ({"count": 3, "overlap": 1}, {"count": 4}, {"count": 9})
    ),
    {"selection": {"name": "cyclic", "count": 3}},
    ALONE | ROBUST,
    ALONE | {"system": SLOW | {"availability": 0.5, "dropout": 0.2}},
    DUAL | {"selection": {"name": "poisson", "share": 1.0}, "masks": {}},
    {"problem": "mlp", "data": DUAL["data"], "selection": ODDS},
    DUAL | {"selection": {"name": "greedy", "count": 3}},
    {"algorithm": "fedadmm", "compress": {"up": "identity", "feedback": "none"}},
    {"algorithm": {"name": "fedavg", "aggregate": "chosen"}, "compress": {"up": TOPK, "feedback": "error"}},
]


@pytest.mark.parametrize("tables", FINE, ids=str)
def test_what_is_near_to_it_and_what_a_refusal_advises_runs(tables):
    assert mpifed.run(STUDY | tables, progress=None).cr == 2


KEEPING = [{"algorithm": name} for name in SERVED if build(name).upload.last(build(name))]


@pytest.mark.parametrize("feedback", ["error", "none"])
def test_where_the_server_keeps_uploads_other_feedback_than_memory_is_refused(feedback, tmp_path):
    for settings in [*KEEPING, ALL]:
        said = told(settings | {"compress": {"up": "natural", "feedback": feedback}}, tmp_path)
        assert said.startswith(f'compress.feedback = "{feedback}" is wrong: the server of '), settings


def test_only_methods_that_need_equal_probabilities_or_everyone_refuse_others():
    every = {name: build(name) for name in Algorithm.choices}
    unequal = {name for name, algorithm in every.items() if isinstance(algorithm.mean_estimate, Unsupported)}
    assert unequal >= {"sfedavg", "sfedprox", "fednova", "fedbuff", "fedepm-graph"}
    everyone = {name for name, algorithm in every.items() if not traits.bears_absence(algorithm)}
    assert everyone >= {"fedgia", "fednl", "marina", "newton"}
