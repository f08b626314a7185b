"""The size of blocks follows the L2 cache that a core has to itself."""

import subprocess

import pytest

from mpifed.core import processor
from mpifed.core.processor import LEAST, MOST, UNKNOWN, block_size


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
        monkeypatch.setattr(processor.sys, "platform", "linux")
        monkeypatch.setattr(processor.os, "sched_getaffinity", lambda _: {4, 5}, raising=False)

    return describe


L1 = (1, "Data", "48K", "4")
L3 = (3, "Unified", "32M", "0-15")


@pytest.mark.parametrize(
    ("siblings", "size", "shared", "expected"),
    [
        ("4", "2048K", "4", 1 << 20),
        ("4,12", "2048K", "4,12", 1 << 20),  # two threads of one core
        ("4", "4M", "4-7", LEAST),  # four cores: 1 MiB each
        ("4-5", "8M", "4-7", 1 << 21),  # two cores of two threads
        ("4", "256K", "4", LEAST),
        ("4", "64M", "4", MOST),
    ],
)
def test_a_block_takes_half_of_the_l2_cache_of_a_core_within_bounds(machine, siblings, size, shared, expected):
    machine(siblings, L1, (2, "Instruction", "1M", "4"), (2, "Unified", size, shared), L3)
    found = block_size()
    assert found.bytes == expected
    assert "KiB of L2 cache" in found.reason


@pytest.mark.parametrize("caches", [[], [L1, L3], [L1, (2, "Unified", "much", "4")], [L1, (2, "Unified", "", "")]])
def test_where_the_cache_is_not_known_there_is_a_default(machine, caches):
    machine("4", *caches)
    assert block_size().bytes == UNKNOWN
    assert "not known" in block_size().reason


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("hw.l2cachesize: 4194304\nhw.perflevel0.l2cachesize: 12582912\nhw.perflevel0.cpusperl2: 4\n", 3 << 20),
        ("hw.l2cachesize: 262144\n", 1 << 18),
        ("hw.ncpu: 8\n", None),
        (None, None),
    ],
)
def test_a_mac_is_asked_by_sysctl(said, expected, monkeypatch):
    def sysctl(command, **options):
        if said is None:
            raise FileNotFoundError("sysctl")
        return subprocess.CompletedProcess(command, 0, said, "")

    monkeypatch.setattr(processor.sys, "platform", "darwin")
    monkeypatch.setattr(processor.subprocess, "run", sysctl)
    assert processor.l2_of_a_core() == expected
    monkeypatch.undo()
    assert LEAST <= block_size().bytes <= MOST  # on this machine
