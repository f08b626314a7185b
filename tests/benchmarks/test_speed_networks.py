"""The programs that measure networks compare models before they time, and the networks are those that they name."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")

from benchmarks.speed import models, networks  # noqa: E402
from benchmarks.speed.models import CASES, Loop, parameters  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("name", "n"), [("MLP", 159_010), ("LeNet", 61_706), ("ResNet-8", 77_850), ("CNN", 315_722)])
def test_the_networks_have_as_many_parameters_as_they_say(name, n):
    case = CASES[name]
    assert len(parameters(case.make())) == n
    assert f"{n:,} parameters" in case.make.__doc__


def test_clients_in_one_pass_end_where_they_end_one_after_the_other():
    case = CASES["LeNet"]
    x, A, b = parameters(case.make()), torch.randn(3, 20, *case.shape), torch.randint(10, (3, 20))
    steps = [[(X[k : k + 10], y[k : k + 10]) for k in (0, 10)] for X, y in zip(A, b, strict=True)]
    loop = Loop(case.make(), x, lambda i, _: steps[i])
    begin = loop.server
    loop.round(range(3))
    found = models.batched(case.make())(begin, A.unflatten(1, (2, 10)), b.unflatten(1, (2, 10)))
    for name, value in loop.server.items():
        assert torch.allclose(found[name], value, atol=1e-6)
        assert not torch.allclose(found[name], begin[name], atol=1e-6)


@pytest.mark.slow
def test_ours_and_the_loop_end_at_the_same_model_or_nothing_is_timed(monkeypatch):
    task = networks.Task(CASES["MLP"].tiny(), 3, "mlp")
    turn = networks.prepare(task)()
    assert turn.deviation < 1e-12
    assert min(turn[:-1]) > 0
    monkeypatch.setattr(Loop, "lr", 0.9 * models.LR)
    with pytest.raises(SystemExit, match=r"MLP: ours and the loop end at different models, [\d.e-]+ apart"):
        networks.prepare(task)
