"""What a rank takes of its machine: half of the L2 cache of a core for a block, threads, and memory that is there."""

import os
import resource
import sys

import pytest

import mpifed
from mpifed.core import memory, processor
from mpifed.core.errors import UserError
from mpifed.core.processor import DEFAULT_BLOCK_BYTES, MAX_BLOCK_BYTES, MIN_BLOCK_BYTES, choose_block_size
from tests.helpers.commands import execute


@pytest.fixture(autouse=True)
def unknown():
    """A machine that nobody has asked for its cache yet."""
    processor.l2_bytes_per_core.cache_clear()
    yield
    processor.l2_bytes_per_core.cache_clear()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine as Linux describes it: CPUs of each core, and (level, type, size, CPUs that share it) of its caches."""

    def describe(siblings, *caches):
        for k, cache in enumerate(caches):
            folder = tmp_path / "cpu4" / "cache" / f"index{k}"
            folder.mkdir(parents=True)
            for name, text in zip(("level", "type", "size", "shared_cpu_list"), cache, strict=True):
                (folder / name).write_text(f"{text}\n")
        topology = tmp_path / "cpu4" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{siblings}\n")
        monkeypatch.setattr(processor, "CPUS", tmp_path)
        monkeypatch.setattr(processor.os, "sched_getaffinity", lambda _: {4, 5}, raising=False)

    return describe


L1 = (1, "Data", "48K", "4")
L3 = (3, "Unified", "32M", "0-15")


@pytest.mark.parametrize(
    ("siblings", "size", "shared", "expected"),
    [
        ("4", "2048K", "4", 1 << 20),
        ("4,12", "2048K", "4,12", 1 << 20),  # two threads of one core
        ("4", "4M", "4-7", MIN_BLOCK_BYTES),  # four cores: 1 MiB each
        ("4-5", "8M", "4-7", 1 << 21),  # two cores of two threads
        ("4", "256K", "4", MIN_BLOCK_BYTES),
        ("4", "64M", "4", MAX_BLOCK_BYTES),
    ],
)
def test_a_block_takes_half_of_the_l2_cache_of_a_core_within_bounds(machine, siblings, size, shared, expected):
    machine(siblings, L1, (2, "Instruction", "1M", "4"), (2, "Unified", size, shared), L3)
    found = choose_block_size()
    assert found.bytes == expected
    assert "KiB of L2 cache" in found.reason


@pytest.mark.parametrize("caches", [[], [L1, L3], [L1, (2, "Unified", "much", "4")], [L1, (2, "Unified", "", "")]])
def test_where_the_cache_is_not_known_there_is_a_default(machine, caches):
    machine("4", *caches)
    assert choose_block_size().bytes == DEFAULT_BLOCK_BYTES
    assert "not known" in choose_block_size().reason


@pytest.mark.parametrize(
    ("variable", "count"), [(None, 1), ("1", 1), ("6", 6), ("4,2", 4), ("", 1), ("0", 1), ("many", 1)]
)
def test_networks_use_what_the_job_gives_a_rank(monkeypatch, variable, count):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert processor.network_threads() == count


def test_kernels_have_one_thread_even_where_the_job_gives_a_rank_more(monkeypatch):
    for name in processor.BLAS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    processor.limit_blas_threads()
    assert os.environ["OMP_NUM_THREADS"] == "4"
    assert {os.environ[name] for name in processor.BLAS_VARIABLES} == {"1"}
    program = "import numpy, threadpoolctl as t; print([p['num_threads'] for p in t.threadpool_info()])"
    assert execute([sys.executable, "-c", program], OMP_NUM_THREADS="4").out.strip() == "[1]"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")  # the variable of the BLAS itself stays
    processor.limit_blas_threads()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"


@pytest.mark.torch
def test_a_network_runs_with_the_threads_of_its_rank(monkeypatch):
    torch = pytest.importorskip("torch")
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    data, problem = {"name": "images", "clients": 2, "size": 10}, {"name": "cnn", "device": "cpu"}
    mpifed.run(data=data, problem=problem, algorithm="fedavg", rounds=1)
    assert set(asked) == {3}


def test_what_does_not_fit_into_memory_or_declares_more_than_its_file_can_hold_is_refused(monkeypatch):
    assert 0 < memory.free() < 2**60
    most = memory.address_space_bytes() + 10**8
    monkeypatch.setattr(resource, "getrlimit", lambda _: (most, most))
    assert 0 < memory.free() <= 10**8 + 10**6  # what is left of the limit
    monkeypatch.undo()
    monkeypatch.setattr(memory, "free", lambda: 10**9)
    memory.check_memory(10**9, "X")
    with pytest.raises(UserError, match=r"^X would take 2,000 MB of memory, but only 1,000 MB are free$"):
        memory.check_memory(2 * 10**9, "X")
    memory.check_declared_size(memory.MAX_COMPRESSION * 10**6, 10**6, "X")
    with pytest.raises(UserError, match=r"^X declares 1,100,000,001 bytes, but its 1,000,000 bytes"):
        memory.check_declared_size(memory.MAX_COMPRESSION * 10**6 + 1, 10**6, "X")
    memory.check_declared_size(memory.SMALL, 0, "X")  # too small to matter
    assert (memory.bytes_of_shape((2**40, 2**40), 8), memory.bytes_of_shape((), 8)) == (2**83, 8)
