"""What a run says of itself before its first round."""

import io

import mpifed
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.new_result import initial_notes, selection_notes, study_notes
from mpifed.experiment.progress import Progress
from mpifed.experiment.run import start
from tests.helpers.algorithm_cases import SERVED

SMALL = {"data": {"clients": 4, "features": 3}, "rounds": 2}


def started(table):
    """The result of a run, and what it said while it ran."""
    out = io.StringIO()
    recorder = start(Job(experiment(SMALL | table)), progress=Progress(out))
    return recorder.result(), out.getvalue()


FEDGIA = "fedgia asks all clients; selection decides what each computes, not which ones reply"
ASKING = ["fedgia", "newton", "fednl", "marina", "ef21-bc", "fednew", "fedns", "lbfgs", "nesterov"]
ASKING += ["malenia", "ringleader"]


def test_a_method_that_asks_all_clients_says_what_selection_decides_where_the_user_set_it():
    result, said = started({})
    assert (result.attrs["notes"], said) == (FEDGIA, "")
    result, said = started({"selection": {"share": 0.25}})
    assert (result.attrs["notes"], said) == (FEDGIA, f"mpifed: {FEDGIA}\n")
    assert started({"selection": "all"})[1] == f"mpifed: {FEDGIA}\n"
    result, said = started({"algorithm": "newton", "selection": {"share": 0.25}})
    assert said == "mpifed: newton asks all clients; selection has no effect\n"
    assert result.attrs["notes"] in said
    assert result.cr == 2
    graph = experiment({"algorithm": "dgd", "graph": "ring"})
    assert selection_notes(graph) == ["all nodes take part in dgd; selection has no effect"]
    for name in SERVED:
        said = selection_notes(experiment({"algorithm": name}))
        if name == "marina":
            others = "selection decides which ones reply in the others"
            assert said == [f"marina asks all clients in some rounds; {others}"]
        assert bool(said) == (name in ASKING), name


def test_advice_is_said_whatever_was_set():
    config = experiment({"algorithm": "flame"})
    (advice,) = study_notes(config, 128, [])
    assert "Theorem 2" in advice
    assert initial_notes(config, 128, []) == [advice]


def test_what_is_changed_is_recorded():
    result = mpifed.run(SMALL | {"selection": "cover", "algorithm": {"name": "fedavg", "step": {"name": "log2"}}})
    assert result.attrs["changed"].split() == ["rounds", "data.clients", "data.features", "algorithm", "selection"]
