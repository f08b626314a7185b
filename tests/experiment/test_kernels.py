"""Which kernels compute a run: chosen, refused, recorded, kept by resume, and the same bits on any number of ranks."""

import io
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import mpifed as public
from mpifed.core.errors import UserError
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.hardware import choose_kernels, load_kernels
from mpifed.experiment.progress import Progress
from mpifed.experiment.run import start
from mpifed.kernels import compiling
from mpifed.mpi.world import World
from mpifed.report.summary import show
from mpifed.results.result import load
from tests.experiment.conftest import goes_on, run
from tests.helpers.killed_runs import content
from tests.helpers.studies import endless

fast = pytest.mark.fast
GAUSSIAN = {"name": "gaussian", "clients": 5, "features": 4}
SMALL = {"data": GAUSSIAN, "problem": "logistic", "algorithm": "fedavg", "rounds": 2}
LINEAR = ["fedadmm", "fedgia", "fedgia, adaptive", "feddcd", "fedepm", "fedavg, mini-batches", "scaffold, float32"]


@pytest.mark.parametrize("kernels", [*(pytest.param(name, marks=fast) for name in ("auto", "compiled")), "numpy"])
def test_what_computed_is_recorded_and_shown_and_another_word_is_refused(kernels, tmp_path):
    result = public.run(SMALL, kernels=kernels, path=tmp_path / "out.h5")
    used = "numpy" if kernels == "numpy" else "compiled"
    assert result.attrs["kernels"] == used
    assert result.attrs.get("numba") == (None if used == "numpy" else compiling.numba_version())
    assert result.config["kernels"] == kernels
    assert any(line.split()[-2:] == ["kernels", used] for line in show(result).splitlines())
    with pytest.raises(UserError, match="kernels"):
        public.run(SMALL, kernels="fortran")


@pytest.mark.parametrize("problem", ["softmax", "svm", "mlp", "logistic"])
def test_what_has_no_compiled_kernels_stays_with_numpy(problem):
    study = SMALL | {"problem": {"name": problem} | ({"hidden": [3]} if problem == "mlp" else {})}
    if problem == "logistic":
        study["data"] = public.arrays(sp.csr_array(np.eye(20)), np.arange(20) % 2, [4] * 5)
    what = "sparse data" if problem == "logistic" else f"problem {problem!r}"
    assert public.run(study).attrs["kernels"] == "numpy"
    with pytest.raises(
        UserError, match=f'^kernels = "compiled" is wrong: there are none for {what}, so it must be "auto"'
    ):
        public.run(study, kernels="compiled")


@fast
@pytest.mark.parametrize("problem", [{"name": "logistic", "mu": 0.1}, {"name": "softmax", "lam": 0.1, "bias": False}])
def test_matrices_of_sparse_data_have_compiled_kernels_where_the_method_needs_them(problem):
    X = np.random.default_rng(0).standard_normal((20, 5))
    data = public.arrays(sp.csr_array(X * (X > 0)), np.arange(20) % 2, [4] * 5)
    study = {"problem": problem, "algorithm": "newton", "rounds": 3}
    compiled, plain = (public.run(study, data=data, kernels=kernels) for kernels in ("auto", "numpy"))
    assert (compiled.attrs["kernels"], plain.attrs["kernels"]) == ("compiled", "numpy")
    assert np.allclose(compiled.x, plain.x, rtol=1e-12, atol=1e-14)
    assert public.run(study | {"algorithm": "fedavg"}, data=data).attrs["kernels"] == "numpy"


def test_without_a_numba_that_works_auto_is_numpy_and_compiled_says_why(monkeypatch):
    monkeypatch.setattr(compiling, "compile_failure", lambda: "numba needs numpy 1")
    says = {False: r": pip install 'mpifed\[fast\]'", True: ", but numba cannot be used here: numba needs numpy 1"}
    for installed, sentence in says.items():
        monkeypatch.setattr(compiling, "has_numba", lambda installed=installed: installed)
        assert public.run(SMALL).attrs["kernels"] == "numpy"
        with pytest.raises(UserError, match=f'^kernels = "compiled" needs numba{sentence}$'):
            public.run(SMALL, kernels="compiled")


@fast
@pytest.mark.slow
@pytest.mark.parametrize("name", LINEAR)
def test_neither_ranks_nor_a_stop_change_a_bit_of_compiled_kernels(name, tmp_path):
    """By default test_resume.py and tests/mpi/test_parity.py show it."""
    study = [*endless(name), "kernels=compiled"]
    several, alone = tmp_path / "ranks.h5", goes_on(tmp_path, study)
    run("run", *study, "rounds=6", "-q", "-o", several, ranks=2)
    assert content(several) == content(alone)
    one, other = load(several).attrs, load(alone).attrs
    assert one["kernels"] == other["kernels"] == "compiled"
    assert one["numba"] == other["numba"]


@fast
def test_a_run_keeps_its_kernels_when_it_is_resumed(tmp_path, monkeypatch):
    """Whatever is installed by then; where numba is gone it says what to do."""
    plain, compiled = tmp_path / "plain.h5", tmp_path / "compiled.h5"
    study = [*endless("fedadmm"), "rounds=2", "-q", "-o"]
    run("run", *study, compiled)
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "has_numba", lambda: False)
        run("run", *study, plain)
        error = run("resume", compiled, "rounds=4", "-q", code=2).err
        assert error.startswith(f"mpifed: {compiled} began with compiled kernels and keeps them when it is resumed, ")
        assert error.endswith(", which needs numba: pip install 'mpifed[fast]'\n")
    run("resume", plain, "rounds=4", "-q")
    run("resume", compiled, "rounds=4", "-q")
    assert [load(path).attrs["kernels"] for path in (plain, compiled)] == ["numpy", "compiled"]
    done = run("resume", compiled, "rounds=6", "kernels=numpy", code=2)
    assert 'kernels = "numpy" is wrong' in done.err


@fast
def test_the_first_run_says_that_it_compiles(tmp_path, monkeypatch):
    said = []
    for folder in (tmp_path, tmp_path, "/proc/none"):
        if folder == "/proc/none":  # where tests/kernels/test_compiling.py compiles
            kernel = compiling.loaded_kernels["one_pass", np.dtype("float32")]
            monkeypatch.setattr(compiling, "compile_kernel", lambda *_, kernel=kernel: kernel)
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
        monkeypatch.setattr(compiling, "loaded_kernels", {})
        stream = io.StringIO()
        start(Job(experiment(SMALL | {"dtype": "float32"})), progress=Progress(stream))
        said.append("".join(line for line in stream.getvalue().splitlines() if line.startswith("mpifed: ")))
    assert "the kernels are compiled for this processor" in said[0]
    assert f"kept in {tmp_path}" in said[0]
    assert "compiled" not in said[1]
    assert "each run does it, for /proc/none/mpifed cannot be written" in said[2]


@fast
@pytest.mark.parametrize("mistake", [("data.features=10000",), ("-o", "there.h5"), ("-o", "no/folder.h5")])
def test_a_study_is_refused_before_anything_is_compiled(mistake, tmp_path, monkeypatch):
    monkeypatch.setattr("mpifed.core.memory.free", lambda: 10**6)
    monkeypatch.setattr("mpifed.core.memory.SMALL", 10**6)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(compiling, "loaded_kernels", {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.h5").touch()
    done = run("run", "data.clients=2", "kernels=compiled", *mistake, code=2)
    assert done.err.startswith("mpifed: ")
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "kernels").exists()


def test_rank_0_of_several_computes_nothing_and_needs_no_numba(monkeypatch):
    monkeypatch.setattr(compiling, "has_numba", lambda: True)
    for name in ("compile_failure", "cache_folder", "is_cached", "get_kernel"):
        monkeypatch.setattr(compiling, name, None)
    monkeypatch.setattr(World, "size", 3)
    monkeypatch.setattr(World, "has_clients", False)
    job = Job(experiment(SMALL))
    data = job.config.data.load(0, "float64")
    assert choose_kernels(job, World(), data, Progress(None)) == "compiled"
    load_kernels("float64", ("one_pass", "grams"), World(), Progress(None))


def test_numba_is_not_imported_where_numpy_computes():
    runs = "; ".join(f"mpifed.run({SMALL!r}, {words})" for words in ("kernels='numpy'", "problem='softmax'"))
    program = f"import sys, mpifed; {runs}; print({{'numba', 'llvmlite'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")
