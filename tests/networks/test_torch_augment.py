"""Augmentation: what happens to images, from whose random numbers, and only to mini-batches."""

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from mpifed.features.network_training import Augmentation, Dropout
from mpifed.federation.local import Local
from mpifed.networks.torch_training import Images
from tests.helpers.commands import mpifed
from tests.helpers.torch_cases import BlockLayout, Pool, RunSpec, fill_blocks, torch
from tests.networks.conftest import slow

pytestmark = pytest.mark.torch
SHAPE = (2, 6, 5)
A = 1 + np.arange(3 * 4 * 60, dtype=np.float32).reshape(3, 4, 60)  # no pixel is 0
COUNTS = [4, 3, 0]  # of the samples of each client


def streams(*seeds):
    return [np.random.default_rng(seed) for seed in seeds or range(3)]


def changed(name, A=A, counts=COUNTS, rngs=None, padding=2):
    return Images([name], padding, SHAPE).change(A, counts, rngs or streams())


def noisy(samples, generator):
    return samples + torch.rand(samples.shape, generator=generator)


def global_noise(samples, generator):
    """Without the generator, and in another type of numbers."""
    return (samples + torch.rand(samples.shape)).bfloat16()


def halved(samples, generator):
    return samples[: len(samples) // 2]


def broken(samples, generator):
    raise ValueError("no")


def written_out(name):
    """The changed samples, one after the other."""
    found = A.copy()
    for i, rng in enumerate(streams()):
        images = A[i, : COUNTS[i]].reshape(-1, *SHAPE)
        if name == "flip":
            new = [
                image[:, :, ::-1] if u < 0.5 else image for image, u in zip(images, rng.random(COUNTS[i]), strict=True)
            ]
        else:
            wide = np.pad(images, [(0, 0), (0, 0), (2, 2), (2, 2)])
            corners = rng.integers(0, 5, (COUNTS[i], 2))
            new = [image[:, r : r + 6, s : s + 5] for image, (r, s) in zip(wide, corners, strict=True)]
        found[i, : COUNTS[i]] = np.reshape(new, (COUNTS[i], 60))
    return found


@pytest.mark.parametrize("name", ["flip", "crop"])
def test_images_are_mirrored_and_shifted_by_the_numbers_of_their_clients(name):
    found, wanted = changed(name), written_out(name)
    for i, count in enumerate(COUNTS):
        assert np.array_equal(found[i, :count], wanted[i, :count])
    assert not np.array_equal(found[0], A[0])
    assert found.dtype == A.dtype
    tensor = changed(name, torch.from_numpy(A))
    assert np.array_equal(tensor.numpy(), found)


@pytest.mark.parametrize("name", ["flip", "crop", f"{__name__}:noisy", f"{__name__}:global_noise"])
def test_what_becomes_of_a_client_does_not_depend_on_the_others_nor_on_its_padding(name):
    together = changed(name)
    alone = changed(name, A[1:2, :3], [3], streams(1))
    assert np.array_equal(together[1, :3], alone[0])
    assert not np.array_equal(changed(name, A[1:2, :3], [3], streams(7)), alone)
    rngs = streams()  # changes follow one another
    wanted = changed(name, changed("flip", rngs=rngs), rngs=rngs)
    assert np.array_equal(Images(["flip", name], 2, SHAPE).change(A, COUNTS, streams())[:2, :3], wanted[:2, :3])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("halved", r"it makes an array \[2, 2, 6, 5\] of samples \[4, 2, 6, 5\]: it must return a .*"),
        ("broken", r"it fails on 4 samples: ValueError: no"),
        ("absent", r".* has no function absent.*"),
    ],
)
def test_a_function_that_makes_no_samples_is_refused(name, sentence):
    with pytest.raises(UserError, match=rf'^problem\.augment = ".*:{name}" is wrong: {sentence}$'):
        changed(f"{__name__}:{name}")


DATA = {"name": "images", "clients": 4, "samples": 9, "size": 10, "channels": 1, "classes": 2, "test": 0.0}
STUDY = {
    "data": DATA,
    "problem": {"name": "cnn", "augment": ["flip", "crop"], "batched": False},  # groups have to be rehearsed
    "algorithm": {"name": "fedavg", "k0": 2, "batch_size": 4, "step": 0.1},
    "dtype": "float32",
    "rounds": 2,
}


def run(**changes):
    return package.run(STUDY, changes, progress=False)


def test_mini_batches_change_but_no_full_batches_nor_evaluations_and_without_it_clients_are_the_usual_ones(monkeypatch):
    sizes = []
    plain = Images.change
    monkeypatch.setattr(Images, "change", lambda *args: sizes.append(args[1].shape[1]) or plain(*args))
    result = run()
    monkeypatch.setattr(Augmentation, "__init__", None)
    without = run(**{"problem.augment": []})
    assert not np.array_equal(result.x, without.x)
    assert result.rounds["objective"][0] == without.rounds["objective"][0]
    assert set(sizes) == {4}


@pytest.mark.parametrize("ranks", [None, slow(3)])
def test_the_same_bits_on_ranks_and_after_a_resume(ranks, tmp_path):
    """Of datasets of torch, too, which a file of the user makes in their own shape."""
    study = tmp_path / "study.toml"
    study.write_text(
        'dtype = "float32"\nselection = {name = "uniform", share = 0.5}\n'
        '[data]\nname = "torch-dataset"\npath = "own.py:make"\n'
        '[problem]\nname = "cnn"\nshape = [1, 10, 10]\naugment = ["crop", "own.py:noisy"]\nbatched = false\n'
        '[algorithm]\nname = "fedavg"\nepochs = 2\nbatch_size = 4\nstep = 0.1\n'
    )
    (tmp_path / "own.py").write_text(
        "import torch\nfrom torch.utils.data import Subset, TensorDataset\n\n\n"
        "def make(count=36):\n"
        "    X = torch.linspace(-1, 1, count * 100).reshape(count, 1, 10, 10)\n"
        "    whole = TensorDataset(X, torch.arange(count) % 2)\n"
        "    return [Subset(whole, range(i, count, 4)) for i in range(4)]\n\n\n"
        "def noisy(samples, generator):\n    return samples + torch.rand(samples.shape)\n"
    )
    done = mpifed("run", study, "rounds=2", "-o", tmp_path / "other.h5", ranks=ranks, timeout=120)
    assert done.code == 0, done.err
    one = package.run(study, {"rounds": 2}, progress=False)
    package.run(study, {"rounds": 1}, progress=False, path=tmp_path / "part.h5")
    for other in (package.load(tmp_path / "other.h5"), package.resume(tmp_path / "part.h5", {"rounds": 2})):
        assert other.x.tobytes() == one.x.tobytes()
        assert other.clients["samples"].tolist() == [9, 9, 9, 9]


@pytest.fixture
def clients():
    """Four clients of nine images, at the beginning of round 1."""
    problem = package.problems.CNN(augment="flip", shape=(1, 10, 10))
    X = np.random.default_rng(0).random((36, 100))
    data = Pool(X, np.arange(36) % 2, None, np.full(4, 9))
    block = fill_blocks(data, BlockLayout(0, data.sizes, [np.arange(4)], np.dtype(float)), problem.labels)[0]
    study = RunSpec(problem, None, 0, 4, np.zeros(3))
    return lambda: Local(block, study, np.arange(4), (1, 0), [Dropout(0), Augmentation(0)])


def batches(f, size=4):
    return [batch.block.A for _, batch, _ in f.steps(3, 0, size)]


def test_some_of_the_clients_draw_what_they_draw_among_all_and_other_numbers_in_other_rounds(clients):
    whole = batches(clients())
    some = batches(clients().take(np.array([1, 3])))
    later = batches(clients().with_key((2, 0)))
    assert all(np.array_equal(one[[1, 3]], other) for one, other in zip(whole, some, strict=True))
    assert not any(np.array_equal(one, other) for one, other in zip(whole, later, strict=True))
    f = clients()
    assert all(A is f.block.A for A in batches(f, size=0))


FLAT = {"name": "torch", "module": "torch.nn:Linear", "arguments": {"in_features": 3, "out_features": 1}, "loss": "mse"}
NUMBERS = {"name": "linreg-noniid", "clients": 4, "features": 3}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"algorithm.batch_size": 0}, r"problem\.augment is wrong: it changes samples of mini-batches, and fedavg .*"),
        ({"problem.augment": "blur"}, r'problem\.augment = "blur" is wrong: it is flip, crop or path\.py:function'),
        (
            {"data": NUMBERS, "problem": FLAT | {"augment": "flip"}},
            r'problem .torch. cannot use these data: augment = "flip" is for images, and samples have the shape .*',
        ),
    ],
)
def test_what_cannot_be_augmented_is_refused(changes, sentence):
    with pytest.raises(UserError, match=rf"^{sentence}$"):
        run(**changes)
