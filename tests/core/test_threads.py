"""Threads of a rank: one for the kernels, as many as the job gives a rank for networks."""

import os
import sys

import pytest

import mpifed
from mpifed.core import threads
from tests.helpers.commands import execute


@pytest.mark.parametrize(
    ("variable", "count"), [(None, 1), ("1", 1), ("6", 6), ("4,2", 4), ("", 1), ("0", 1), ("many", 1)]
)
def test_networks_use_what_the_job_gives_a_rank(monkeypatch, variable, count):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert threads.of_networks() == count


def test_kernels_have_one_thread_even_where_the_job_gives_a_rank_more(monkeypatch):
    for name in threads.KERNELS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    threads.limit()
    assert os.environ["OMP_NUM_THREADS"] == "4"
    assert {os.environ[name] for name in threads.KERNELS} == {"1"}
    program = "import numpy, threadpoolctl as t; print([p['num_threads'] for p in t.threadpool_info()])"
    assert execute([sys.executable, "-c", program], OMP_NUM_THREADS="4").out.strip() == "[1]"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")  # the variable of the BLAS itself stays
    threads.limit()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"


@pytest.mark.torch
def test_a_network_runs_with_the_threads_of_its_rank(monkeypatch):
    torch = pytest.importorskip("torch")
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    data, problem = {"name": "images", "clients": 2, "size": 16}, {"name": "cnn", "device": "cpu"}
    mpifed.run(data=data, problem=problem, algorithm="fedavg", rounds=1)
    assert set(asked) == {3}
