"""What goes with what once data are loaded: rules over the number m of clients and the selector of those in a round."""

from mpifed.experiment import findings
from mpifed.experiment.compatibility import DATA_SHOW, SCORES_SHOW
from mpifed.experiment.rule import Counted, Rule

NOISE_OF_ALL = "{name} guarantees privacy here for sums that have the noise of all {m} clients"

COUNTED: list[Rule[Counted]] = [
    Rule(lambda c: c.masks and c.selector.batch_size is not None, SCORES_SHOW),
    Rule(
        lambda c: c.masks and c.selector.size < 2,
        "selection takes {selector.size} client a round, but masks need at least 2: the sum of one upload is that "
        "upload",
    ),
    Rule(
        findings.uncancelled,
        "system.least = {system.least} is wrong: with masks.threshold = {masks.threshold:.3g} masks of {selector.size} "
        "selected clients cancel only where {needed} reply, so it must be at least {needed}",
    ),
    Rule(lambda c: c.selector.asks and findings.promises(c), DATA_SHOW),
    Rule(
        lambda c: c.selector.size < c.m and findings.promises(c, "sums"),
        "selection = {selected_toml} is wrong with {selector.size} clients a round: " + NOISE_OF_ALL + ", so it must "
        'be "all"',
    ),
    Rule(
        lambda c: c.system and c.system.absence() and findings.promises(c, "sums"),
        "system.{absence} = {absent} is wrong: " + NOISE_OF_ALL + ", so it must be absent",
    ),
    Rule(
        findings.same_sets,
        "selection.overlap = 0 is wrong: {name} exchanges within the selected clients alone, and {selector.size} of "
        "{m} by turns are always the same sets, so it must be at least 1",
    ),
]
