"""The arguments of a Python call describe the same experiment as an experiment file and overrides."""

import pytest

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.fedgia import FedGiA
from mpifed.api.study import build_table, override_words
from mpifed.core.errors import UserError
from mpifed.data.partition import Dirichlet
from mpifed.experiment import config
from tests.api.conftest import TABLE


def built(given, overrides=None, **more):
    return config.experiment(build_table(given, overrides, more))


def test_a_mapping_may_be_nested_or_dotted_or_hold_objects(file):
    dotted = {"data.clients": 6, "data.features": 5, "algorithm.k0": 2, "algorithm.name": "fedavg", "rounds": 4}
    mixed = {"data": {"clients": 6}, "data.features": 5, "algorithm": "fedavg", "algorithm.k0": 2, "rounds": 4}
    for given in (TABLE, dotted, mixed, {**TABLE, "algorithm": FedAvg(k0=2)}, str(file)):
        assert built(given) == built(file)


def test_names_objects_and_keys_change_what_they_name_and_what_comes_later_wins(file):
    found = built(file, {"algorithm.k0": 7, "rounds": 9, "data": {"clients": 8}}, rounds=3, seed=5)
    assert (found.algorithm.k0, found.data.clients, found.data.features) == (7, 8, 5)
    assert (found.rounds, found.seed) == (3, 5)
    assert built(file, problem="logistic").problem.label() == "logistic"
    assert built(file, algorithm="fedgia").algorithm == FedGiA()
    assert built(file, {"algorithm": {"name": "fedavg", "epochs": 1, "batch_size": 2}}).algorithm.k0 == 2
    found = built(file, {"algorithm.k0": 4}, algorithm=FedAvg(batch_size=3))
    assert (found.algorithm.k0, found.algorithm.batch_size) == (4, 3)
    dealt = built({"data": {"name": "digits", "partition": Dirichlet(alpha=0.2)}})
    assert dealt.data.partition == Dirichlet(alpha=0.2)


def test_none_stands_for_the_default_study_or_value_and_an_empty_mapping_changes_nothing(file):
    assert built(file, {"algorithm.k0": None}).algorithm.k0 == FedAvg().k0
    assert built(file, {"data": {}}) == built(file)
    assert built({"system": {}}).system is not None
    assert built(None) == config.experiment(dict(config.DEFAULT_STUDY))
    before = dict(config.DEFAULT_STUDY)
    build_table(None, {"stop.seconds": 3}, {})
    assert before == config.DEFAULT_STUDY


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: built(None, rouns=3), r"^unknown key 'rouns'; did you mean 'rounds'\?$"),
        (lambda: built({"algorithm": FedGiA(k0=-1)}), r"^algorithm\.k0 = -1 is wrong"),
        (lambda: built({"rounds": 3, "rounds.k0": 1}), r"^'rounds\.k0=1': rounds is not a table$"),
        (lambda: built({}, "out.h5"), r"^overrides = 'out\.h5' is wrong: .* the result file is path=…$"),
        (lambda: built({}, [1]), r"^overrides = \[1\] is wrong: write a mapping"),
        (lambda: built(["study.toml"]), r"^the study \['study\.toml'\] is neither the path of an experiment file"),
        (lambda: built("no.toml"), r"^experiment file 'no\.toml' cannot be read: No such file"),
        (lambda: override_words({"rounds": None}, {}), r"^rounds = None is wrong: write its value$"),
    ],
)
def test_a_mistake_is_answered_by_the_sentence_of_the_command(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()


def test_words_are_those_of_the_command():
    found = override_words({"algorithm": {"k0": 2, "H": "gram"}}, {"rounds": 3})
    assert found == ["algorithm.k0=2", 'algorithm.H="gram"', "rounds=3"]
