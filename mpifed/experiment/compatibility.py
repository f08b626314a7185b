"""What goes with what: one list of rules over the traits of methods and the tables of an experiment."""

from mpifed.algorithms.bases.graph_method import GraphMethod
from mpifed.experiment import findings
from mpifed.experiment.evaluated import EVALUATED
from mpifed.experiment.kernels import DEVICES
from mpifed.experiment.prepared_data import leaking
from mpifed.experiment.rule import ONE, Rule
from mpifed.experiment.settings import Experiment
from mpifed.federation.method import MovesDuals, Personalised
from mpifed.federation.participation.importance import Importance
from mpifed.federation.participation.scored import Greedy
from mpifed.federation.participation.selection import Scored
from mpifed.federation.traits import Mean, Refused, Takes

DATA_SHOW = (
    "selection = {selected_toml} is wrong: it asks clients for exact numbers of their data, and these and the clients "
    "that it selects break the privacy that {name} guarantees here, so it must be one that looks at no data, such as "
    "uniform, or importance with selection.odds that are known without the data"
)
SCORES_SHOW = (
    "masks cannot be used with selection.name = {selected!r}: candidates send their scores one by one, and masks hide "
    "single uploads"
)

# Between tables, whatever the problem is: judged when an experiment is read.
TABLES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.stop.simulated_seconds and c.system is None,
        "stop.simulated_seconds = {stop.simulated_seconds} is wrong: time is simulated only with a table [system], "
        "which states the speed of the clients",
    ),
    Rule(
        lambda c: c.asynchronous and c.system is None,
        "asynchronous.arrivals = {asynchronous.arrivals} is wrong without a table [system]: who arrives first follows "
        "from the speed, bandwidth and latency of the clients, which that table states",
    ),
    Rule(
        lambda c: c.asynchronous and isinstance(c.algorithm.asynchronous, Refused),
        "asynchronous.arrivals = {asynchronous.arrivals} is wrong: {name} cannot be asynchronous, because "
        "{algorithm.asynchronous.why}; {asynchronous_methods} can, and without [asynchronous] so can {name} run",
    ),
    Rule(
        lambda c: c.asynchronous and c.asynchronous.arrivals < 2 and c.algorithm.mean is Mean.COUPLED,
        "asynchronous.arrivals = {asynchronous.arrivals} is wrong: {name} needs at least 2 clients a round",
    ),
    Rule(
        lambda c: c.asynchronous and findings.chosen(c),
        "{key} = {value} is wrong with [asynchronous]: all clients work, and those that arrive first take part, so "
        "leave [selection] out",
    ),
    Rule(
        lambda c: c.asynchronous and c.masks,
        "masks cannot be used with [asynchronous]: clients agree on masks before they compute, and which uploads are "
        "added up is known only when they arrive",
    ),
    Rule(
        lambda c: c.asynchronous and findings.lossy(c, "down"),
        'compress.down = "{C}" is wrong with [asynchronous]: compressed downloads go to all clients at the same time, '
        "and there each gets its model when it arrives, so leave it out",
    ),
    Rule(
        lambda c: c.asynchronous and findings.last_uploads(c) and findings.lossy(c, "up"),
        'compress.up = "{C}" is wrong with [asynchronous]: the server of {name} keeps the last uploads of all clients, '
        "and their changes cannot be compressed while others arrive, so leave it out",
    ),
]

# Judged before data are loaded.
RULES: list[Rule[Experiment]] = [
    Rule(findings.mismatch, "{mismatch}"),
    Rule(
        lambda c: c.stop.accuracy and not c.problem.classifies(),
        "stop.accuracy = {stop.accuracy} is wrong: {loss} has no classes, so no accuracy is recorded",
    ),
    Rule(
        leaking, "data.{key} = {value} is wrong: {why}, so with the privacy that {name} guarantees it must be {right}"
    ),
    *EVALUATED,
    Rule(
        findings.batches,
        "{key}.batch_size = {size} is wrong: {loss} has no mini-batches, for f_i is no mean over samples: it must be 0",
    ),
    Rule(
        lambda c: c.kernels in DEVICES and not c.problem.on_devices(),
        'kernels = "{kernels}" is wrong: {loss} does not compute with tensors on a device, so it must be "auto"',
    ),
    Rule(
        findings.matrices,
        'kernels = "{kernels}" is wrong: {name} needs {what}, which are computed in memory alone, so it must be "auto"',
    ),
    Rule(
        lambda c: c.problem.augments() and findings.whole_batches(c),
        "problem.augment is wrong: it changes samples of mini-batches, and {name} takes none here; where a method has "
        "some, write algorithm.batch_size = 10",
    ),
    Rule(
        findings.half_of_double,
        'problem.autocast = "{half}" is wrong with dtype = "float64": it makes some layers of single precision compute '
        'in half of it, so write dtype = "float32"',
    ),
    Rule(
        lambda c: c.record.personal and not isinstance(c.algorithm, Personalised),
        "record.personal = true is wrong: {name} has no personal models",
    ),
    Rule(findings.wrong_weights, "objective.weights = {weights} is wrong: {why}"),
    Rule(
        findings.no_proximal_step,
        "objective.{key} = {value} is wrong: {name} cannot take a penalty into account, because {why}; "
        "{proximal_methods} can",
    ),
    Rule(
        lambda c: c.objective.unpenalised is not None and not c.objective.penalised,
        "objective.unpenalised is wrong without objective.l1 and objective.l2: there is no penalty to leave out",
    ),
    Rule(
        lambda c: c.graph is None and isinstance(c.algorithm, GraphMethod),
        'graph is missing: {name} has no server, so it needs a graph, such as graph = "ring"',
    ),
    Rule(
        lambda c: c.graph and not isinstance(c.algorithm, GraphMethod),
        'graph = "{edges}" is wrong: {name} has a server; the methods on graphs are {graph_methods}; '
        "one of your own is derived from mpifed.GraphMethod",
    ),
    Rule(lambda c: c.graph and c.compress, "compress cannot be used with graph: nodes send their vectors as they are"),
    Rule(
        lambda c: c.graph and c.masks,
        "masks cannot be used with graph: masks hide uploads from a server, and nodes send to their neighbours",
    ),
    Rule(
        lambda c: c.graph and c.algorithm.takes is Takes.ALL and findings.chosen(c),
        'selection = "{selected}" is wrong: all nodes of {name} work in every round, so it must be "all" or absent; '
        "edges may be lost with graph.loss",
    ),
    Rule(
        findings.moving,
        "graph.{key} is wrong: {name} needs a graph that does not change, because {algorithm.fixed_weights}",
    ),
    Rule(
        lambda c: isinstance(c.selection, Importance) and isinstance(findings.unequal(c), Refused),
        'selection.name = "importance" is wrong: {name} needs equal probabilities, because {algorithm.mean.why}, so it '
        'must be one such as "uniform"',
    ),
    Rule(
        lambda c: isinstance(c.selection, Importance) and c.selection.odds is None and not c.problem.has("lipschitz"),
        "selection.odds is missing: {loss} tells no Lipschitz constants L_i to take odds from",
    ),
    Rule(
        lambda c: isinstance(c.selection, Greedy) and not isinstance(c.algorithm, MovesDuals),
        'selection.name = "greedy" is wrong: clients of {name} have no dual step to score, so it must be "biased" (by '
        'gradients), "power-of-choice" (by losses) or one without scores',
    ),
    Rule(lambda c: c.selection.asks and findings.promises(c), DATA_SHOW),
    Rule(
        lambda c: c.dtype != "float64" and findings.promises(c, "double"),
        'dtype = "{dtype}" is wrong: the privacy that {name} guarantees here covers the rounding errors of double '
        'precision, so it must be "float64"',
    ),
    Rule(lambda c: c.masks and isinstance(c.selection, Scored), SCORES_SHOW),
    Rule(
        lambda c: c.masks and findings.one_by_one(c),
        "masks cannot be used with {name}: its server needs uploads one by one, and masks hide single uploads",
    ),
    Rule(
        lambda c: c.masks and c.algorithm.upload.kind == "compressed",
        "masks cannot be used with {name}: it compresses its uploads",
    ),
    Rule(
        lambda c: c.compress and c.compress.feedback != "auto" and c.compress.up is None,
        'compress.feedback = "{compress.feedback}" is wrong: it is about compress.up, which is absent',
    ),
    Rule(findings.inexact, 'compress.{way} = "{C}" is wrong: {name} needs exact {way}loads, because {why}'),
    Rule(findings.unfit, 'compress.{way} = "{C}" is wrong: {error}'),
    Rule(findings.wrong_feedback, "{error}"),
    Rule(
        lambda c: c.masks and c.compress and c.compress.up,
        'compress.up = "{up}" cannot be used with masks: masked uploads have all their numbers, so that nothing is '
        "saved",
    ),
    Rule(
        lambda c: findings.absent(c) and c.algorithm.takes.everyone,
        "system.{absence} = {absent} is wrong: {name} needs a gradient of every client in {when}, also of those that "
        "are not selected, so no client can be absent",
    ),
    Rule(
        lambda c: c.system and c.system.speed and c.system.passes is None and c.algorithm.work(ONE) is None,
        "system.passes is missing: {name} cannot tell beforehand how often its clients pass over their samples, so "
        "system.speed needs it",
    ),
    Rule(
        findings.no_deadline,
        "system.partial = true is wrong without system.{key}: clients take fewer local steps where not all of them fit "
        "into the deadline",
    ),
    Rule(
        lambda c: findings.partial(c) and c.algorithm.local_steps(ONE) is None,
        "system.partial = true is wrong: clients of {name} cannot take fewer local steps, those of {partial_methods} "
        "can",
    ),
    Rule(
        lambda c: c.graph and c.system and c.system.dropout,
        "system.dropout = {system.dropout} is wrong with a table [graph]: nodes do not drop out, but edges may carry "
        "nothing: graph.loss",
    ),
    Rule(
        lambda c: c.graph and c.system and c.system.deadline,
        "system.deadline = {system.deadline} is wrong with a table [graph]: no server waits for nodes, each of which "
        "waits for its neighbours",
    ),
    Rule(
        lambda c: c.graph and c.system and c.system.partial,
        "system.partial = {system.partial} is wrong with a table [graph]: without a deadline no node takes fewer local "
        "steps",
    ),
    Rule(
        lambda c: c.asynchronous and findings.awaited(c),
        "system.{key} = {value} is wrong with [asynchronous]: there every client replies in its own time, and "
        "asynchronous.arrivals says how many the server waits for, so leave it out",
    ),
]
