"""What the tests of all methods read of an algorithm: the one place that knows by which names it says so."""

from operator import attrgetter

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.features.matching import (
    missing_methods as missing_methods,  # of what an algorithm needs, what a class of problems lacks
)
from mpifed.federation.traits import Participation, divergence_advice
from mpifed.federation.traits import (
    required_methods as required_methods,  # the optional methods of a problem that an algorithm needs
)

selections = attrgetter("participation.selections")  # how often a round selects clients; 0 where all of them are called
columns = attrgetter("watches")  # names of the sums over clients that the algorithm asks evaluations for
tuning = divergence_advice  # the option to change where the iterates diverge, as error messages name it


def on_graphs(name):
    """Whether a method has no server."""
    return issubclass(Algorithm.member(name, "algorithm"), GraphAlgorithm)


def can_be_asynchronous(name):
    return bool(Algorithm.member(name, "algorithm").asynchronous)


def all_reply(algorithm):
    """Whether clients that are not selected receive and send in every round, too."""
    return algorithm.participation in (Participation.ALL, Participation.SELECTED_AND_ALL) and not isinstance(
        algorithm, GraphAlgorithm
    )


def all_change(algorithm):
    """Whether clients that are not selected have a rule of their own."""
    return all_reply(algorithm) or algorithm.participation.selections > 1


def by_coin(algorithm):
    """Whether a coin decides who replies."""
    return algorithm.participation is Participation.SELECTED_OR_ALL


def bears_absence(algorithm):
    """Whether a round can go on without clients that it called."""
    return not algorithm.participation.everyone


def bears_change(name):
    """Whether the edges of a graph may differ between rounds."""
    return not getattr(Algorithm.member(name, "algorithm"), "fixed_weights", "")
