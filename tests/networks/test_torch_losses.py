"""Losses and metrics of networks in torch: built-in ones, functions of the user, and regression."""

from functools import partial

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from mpifed.features.guarantee import describe_stop_rules
from mpifed.features.stop import StopRules
from mpifed.networks.torch_losses import make_loss
from mpifed.problems.problem import Problem
from tests.helpers.torch_cases import C, M, N, agrees, at, dataset, local, network, point, samples, tensors, torch
from tests.networks.conftest import slow

pytestmark = pytest.mark.torch
nn = torch.nn
F = nn.functional


def two_layers(width=C):
    return nn.Sequential(nn.Linear(N, 5), nn.Tanh(), nn.Linear(5, width))


class Flat(nn.Module):
    """One number for each sample, (d,) in place of (d, 1)."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(N, 1, bias=False)

    def forward(self, samples):
        return self.line(samples)[:, 0]


Plain = partial(nn.Linear, N, C)
Images = partial(nn.Linear, 48, out_features=6)
Pictures = partial(nn.Sequential, nn.Linear(48, 6), nn.Unflatten(1, (6, 1)))


def focal(scores, targets):
    """The focal loss of each sample."""
    loss = F.cross_entropy(scores, targets, reduction="none")
    return (1 - torch.exp(-loss)) ** 2 * loss


def of_focal(how):
    """What ``how`` makes of the focal loss of each sample and their number."""
    return lambda scores, targets: how(focal(scores, targets), len(targets))


focal_mean = of_focal(lambda loss, d: loss.mean())
worst = of_focal(lambda loss, d: loss.max())
summed = of_focal(lambda loss, d: loss.sum())
too_few = of_focal(lambda loss, d: loss[:1])
multiplied = of_focal(lambda loss, d: loss * d)
divided = of_focal(lambda loss, d: loss / d)


def quantiles(scores, targets):
    """Three quantiles for each number: a loss (k, 3)."""
    left = targets[:, None] - scores
    return torch.maximum(left * torch.tensor([0.1, 0.5, 0.9]), left * torch.tensor([-0.9, -0.5, -0.1]))


def without_gradient(scores, targets):
    return (scores.argmax(1) != targets).double()


def second(scores, targets):
    """Whether the class is among the two largest scores."""
    return (scores.topk(2, 1).indices == targets[:, None]).any(1)


def of_logarithms(scores, targets):
    """It takes logarithms of probabilities alone."""
    assert (scores <= 0).all()
    return -scores


def always(number):
    """A function that gives this number."""
    return lambda scores, targets: number


a_number, undefined, objective = map(always, (3.0, float("nan"), 0.0))


def here(name):
    return f"{__name__}:{name}"


@pytest.mark.parametrize("loss", [here("focal"), here("focal_mean"), "torch.nn:MultiMarginLoss"])
@pytest.mark.parametrize("size", [1 << 20, 3 * N * 8], ids=["whole", "in pieces"])
def test_a_loss_of_your_own_may_give_one_number_for_each_sample_or_their_mean(loss, size, monkeypatch):
    monkeypatch.setattr("mpifed.networks.torch_network.PIECE_BYTES", size)
    f = local(network(here("two_layers"), loss=loss), dataset())
    agrees(f, point(f), two_layers(), nn.MultiMarginLoss() if loss.startswith("torch.nn") else focal_mean)
    assert f.problem.classifies()


QUICK = [("two_layers", "mse"), ("two_layers", "l1"), ("Flat", "huber")]
SLOW = [("two_layers", "huber"), ("Flat", "mse"), ("Flat", "l1")]


@pytest.mark.parametrize(("name", "loss"), [*QUICK, *(slow(*one) for one in SLOW)])
def test_regression_has_real_targets_and_no_accuracy(name, loss):
    theirs = getattr(F, f"{loss}_loss")
    arguments = {"width": 1} if name == "two_layers" else {}
    f = local(network(here(name), loss=loss, arguments=arguments), dataset("numbers"))
    x = point(f)
    module = at(globals()[name](**arguments), x)
    for i in range(M):
        A, b = map(torch.tensor, samples(dataset("numbers"), i))
        assert np.isclose(f.value(x)[i], theirs(module(A).reshape(-1), b).item(), rtol=1e-12)
    assert not f.problem.classifies()
    assert len(f.evaluate(x)) == 2


def test_a_loss_of_your_own_for_numbers_may_take_several_scores():
    problem = network(here("two_layers"), loss=here("quantiles"), targets="numbers", metric=here("quantiles"))
    f = local(problem, dataset("numbers"))
    for test, found in ((False, f.value(point(f))), (True, f.measure(point(f))[0])):
        A, b = map(torch.tensor, samples(dataset("numbers"), 2, test))
        wanted = quantiles(at(two_layers(), point(f))(A), b).mean().item()
        assert np.isclose(found[2], wanted, rtol=1e-7)  # the levels are in single precision


@pytest.mark.parametrize(("loss", "score"), [("torch.nn:BCELoss", 0.5), (here("of_logarithms"), -0.5)])
def test_a_loss_may_take_probabilities_alone_or_other_scores_alone(loss, score):
    assert make_loss(loss, "numbers").is_mean(torch.full((2, 1), score), torch.zeros(2)) == (score > 0)


def test_two_classes_may_have_one_score():
    data = dataset()
    data.samples["training"] = data.train._replace(y=data.train.y % 2)
    data.samples["test"] = data.samples["test"]._replace(y=data.samples["test"].y % 2)
    data.classes = 2
    f = local(network(here("Flat"), loss="binary-cross-entropy"), data)
    x = point(f)
    A, b = samples(data, 1)
    assert np.isclose(f.value(x)[1], np.mean(np.logaddexp(0, A @ x) - b * (A @ x)), rtol=1e-12)
    A, b = samples(data, 3, test=True)
    assert f.accuracy(x)[0][3] == np.mean((A @ x > 0) == b)


@pytest.mark.parametrize(
    ("metric", "formula"),
    [
        ("rmse", lambda s, y: np.sqrt(np.mean((s - y) ** 2))),
        ("mae", lambda s, y: np.mean(np.abs(s - y))),
        ("r2", lambda s, y: 1 - np.sum((s - y) ** 2) / np.sum((y - y.mean()) ** 2) if len(y) > 1 else 0.0),
    ],
)
def test_a_metric_is_evaluated_on_the_test_samples_of_each_client(metric, formula):
    """A client without test samples adds 0; r2 of a single sample is 0."""
    data = dataset("numbers")
    f = local(network(here("Flat"), loss="mse", metric=metric), data)
    x = np.eye(N)[0] + 0.1
    measured = [samples(data, i, test=True) for i in range(1, M)]
    assert np.allclose(f.measure(x)[0], [0.0, *(formula(A @ x, b) for A, b in measured)], rtol=1e-12)


def test_r2_of_equal_numbers_is_one_for_perfect_scores_and_else_zero():
    data = dataset("numbers")
    data.train.y[:] = data.train.X[:, 0] = 0.1  # the mean of nine of these is another number
    data.sizes_test = None
    f = local(network(here("Flat"), loss="mse", metric="r2"), data)
    assert [f.measure(factor * np.eye(N)[0])[0][0] for factor in (1, 2)] == [1.0, 0.0]


@pytest.mark.parametrize("name", ["second", "worst"])
def test_a_metric_of_your_own_may_give_one_number_for_each_sample_or_one_for_the_client(name):
    data, metric = dataset(), globals()[name]
    f = local(network(here("two_layers"), metric=here(name)), data)
    for i, found in list(enumerate(f.measure(point(f))[0]))[1:]:
        A, b = tensors(*samples(data, i, test=True))
        assert np.isclose(found, metric(at(two_layers(), point(f))(A).detach(), b).double().mean().item(), rtol=1e-12)


def study(**problem):
    return {
        "data": {"name": "images", "size": 4, "clients": 3, "samples": 20, "test": 0.2},
        "problem": {"name": "torch", "module": here("Images"), **problem},
        "algorithm": {"name": "fedavg", "step": {"name": "constant", "a": 0.01}},
        "rounds": 3,
        "stop": {"gradient": 0.0},
    }


def test_a_metric_is_a_column_of_the_record():
    result = package.run(study(loss="mse", arguments={"out_features": 1}))
    assert result.rounds["rmse"][-1] < result.rounds["rmse"][0]
    assert "accuracy" not in result.rounds


def test_a_metric_has_the_bits_of_one_process_on_two_hosts():
    """Each client's number is its own, and they are added along the tree of clients."""
    f = local(network(here("two_layers"), metric=here("worst")), dataset())
    whole = f.measure(point(f))[0]
    for i in range(1, M):
        positions, block = f.block.held["test"][0]
        alone = block.take(np.flatnonzero(positions == i))
        assert f.problem.measure(alone, point(f))[0].tobytes() == whole[[i]].tobytes()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "crossentropy"}, r'^problem.loss = "crossentropy" is wrong: did you mean \'cross-entropy\'\?$'),
        ({"loss": "perplexity"}, r"is wrong: it is cross-entropy, .* or path.py:function$"),
        ({"loss": here("nothing")}, "test_torch_losses has no function nothing"),
        ({"loss": "/nowhere/losses.py:focal"}, "is wrong: there is no file /nowhere/losses.py$"),
        ({"loss": here("without_gradient")}, "is wrong: it has no gradient: compute it from the scores with functions"),
        ({"loss": here("a_number")}, r"it cannot take scores \[2, 6\] and targets \[2\]: ValueError: it gives a float"),
        ({"loss": here("too_few")}, r"it gives an array \[1\] for 2 samples: one loss each, or their mean, is needed$"),
        ({"loss": here("summed")}, "is wrong: it gives the sum over the samples, and f_i is their mean: return one lo"),
        ({"loss": here("multiplied")}, "is wrong: it multiplies the loss of a sample by the number of samples: return"),
        ({"loss": here("divided")}, "is wrong: it divides the loss of a sample by the number of samples: return one"),
        ({"loss": "torch.nn:GaussianNLLLoss"}, r"it cannot take scores \[2, 6\] and targets \[2\]: TypeError"),
        ({"loss": "torch.nn:Linear"}, r"is wrong: it cannot be made without arguments: TypeError: .* 2 required pos"),
        ({"loss": here("quantiles"), "targets": "numbers"}, r"\[2, 6\]: it must be \[2, 1\], .*, for the metric rmse"),
        ({"loss": here("focal"), "module": here("Pictures")}, r"\[2, 6, 1\]: it must be \[2, C\], one score per cla"),
        ({"loss": "mse"}, r"gives an array \[2, 6\]: it must be \[2, 1\], one score per sample$"),
        ({"loss": "mse", "targets": "classes"}, 'targets = "classes" is wrong: the targets of mse are numbers$'),
        ({"loss": "binary-cross-entropy"}, '"binary-cross-entropy" is for labels 0 and 1, but there are 6 classes'),
        ({"metric": "rmse"}, '^problem.metric = "rmse" is wrong: it is for numbers, and the targets are classes$'),
        ({"metric": "accurcy"}, "is wrong: it is rmse, mae, r2 or path.py:function$"),
        ({"metric": here("objective")}, "^the metric objective of the problem is wrong: there is a column objective"),
        ({"metric": here("undefined")}, "it gives nan for a client with 4 samples, not a finite number$"),
    ],
)
def test_a_loss_or_a_metric_that_cannot_be_used_says_why(options, sentence):
    with pytest.raises(UserError, match=sentence) as refused:
        package.run(study(**options))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("optimizer", "theirs", "options"),
    [
        slow("sgd", "SGD", {}),
        ({"name": "momentum", "nesterov": True}, "SGD", {"momentum": 0.9, "nesterov": True}),
        slow("adam", "Adam", {}),
        ("adamw", "AdamW", {}),
    ],
)
def test_fedavg_of_one_client_is_the_training_loop_of_torch(optimizer, theirs, options, tmp_path):
    """With an optimiser that starts anew in every round."""
    data = dataset(sizes=[40])
    A, b = samples(data, 0)
    np.savez(tmp_path / "one.npz", X=A, y=b, sizes=[40])
    step = {"name": "constant", "a": 0.05}
    result = package.run(
        {
            "data": {"name": "file", "path": str(tmp_path / "one.npz")},
            "problem": {"name": "torch", "module": here("Plain"), "batched": False},
            "algorithm": {"name": "fedavg", "k0": 7, "step": step, "optimizer": optimizer},
            "selection": "all",
            "stop": {"gradient": 0.0},
            "rounds": 3,
        }
    )
    module = at(Plain(), network(here("Plain")).initial(data, 0))
    A, b = tensors(A, b)
    for _ in range(3):
        stepper = getattr(torch.optim, theirs)(module.parameters(), lr=0.05, **options)
        for _ in range(7):
            stepper.zero_grad()
            F.cross_entropy(module(A), b).backward()
            stepper.step()
    x = np.concatenate([p.detach().numpy().ravel() for p in module.parameters()])
    assert np.allclose(result.x, x, rtol=1e-10, atol=1e-12)


def test_a_program_may_pass_the_network_the_loss_and_the_metric_themselves():
    """As in a notebook, where no file has them."""

    class Local(nn.Linear):
        def __init__(self):
            super().__init__(48, 6)

    def smooth(scores, targets):
        return F.cross_entropy(scores, targets, label_smoothing=0.1)

    result = package.run(study(module=Local, loss=smooth, metric=second))
    assert (result.rounds["second"] >= result.rounds["accuracy"]).all()
    assert 'loss = "__main__:smooth"' in result.attrs["config"]


def test_an_instance_is_refused_where_a_class_is_wanted_and_a_function_that_returns_or_calls_it_works():
    net, loss = nn.Linear(48, 6), nn.CrossEntropyLoss(label_smoothing=0.1)
    with pytest.raises(UserError, match=r"^problem\.module is an instance of Linear: pass the class, or a function"):
        package.run(study(module=net))
    with pytest.raises(UserError, match=r"^problem\.loss is an instance of CrossEntropyLoss: pass the class, or a"):
        package.run(study(module=here("Images"), loss=loss))

    def returned():
        return net

    def called(scores, targets):
        return loss(scores, targets)

    assert package.run(study(module=returned, loss=called)).rounds["round"][-1] == 3


def test_under_a_guarantee_a_metric_that_may_fail_on_the_true_data_is_said():
    told = describe_stop_rules(StopRules(diverged=0), network(here("Flat"), loss="mse", metric="r2"))
    assert told == ["problem.metric looks at the true data: whether the run fails is then not private"]
    assert describe_stop_rules(StopRules(diverged=0), Problem.build("logistic", "problem")) == []
