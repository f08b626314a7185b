"""Emulated hosts on this machine: network namespaces with a name, an address, a cable and an sshd of their own.

MPI between them goes over TCP, and each is a node of its own. As root, with iproute2 and openssh-server.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mpifed.mpi.world import library_version
from tests.helpers.commands import ROOT, SETTINGS, Outcome

OPEN_MPI = "Open MPI" in library_version()
PASSED = ("PYTHON", "OMP_", "OPENBLAS_")  # how variables begin that a host must have as others do: they choose kernels
OVER_TCP = {"UCX_TLS": "tcp,self"}  # else MPICH finds the memory that the hosts share, and no cable matters
PLACES = "/usr/sbin:/usr/bin:/sbin:/bin"
RSH = "#!/bin/sh\nexec ssh -i {0}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR {1}"
SSHD = """ListenAddress {address}
HostKey {folder}/hostkey
AuthorizedKeysFile {folder}/key.pub
PidFile {folder}/{name}.pid
StrictModes no
PermitRootLogin yes
UsePAM no
"""


def ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20, check=check)
    return done.stdout


class Hosts:
    """Two hosts, ``names``; ``down`` pulls the cable of one of them and ``up`` puts all back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = os.getpid() % 10_000
        self.names = [f"h{self.own}a", f"h{self.own}b"]
        self.bridge = f"br{self.own}"

    def start(self) -> None:
        for key in ("key", "hostkey"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key], check=True)
        agent = self.folder / "rsh"
        agent.write_text(RSH.format(self.folder, '"$@"'))
        agent.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)
        addresses = [f"10.77.{self.own % 250}.{k}" for k in (1, 2)]
        table = "127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for a, n in zip(addresses, self.names, strict=True))
        ip("link", "add", self.bridge, "type", "bridge")
        ip("link", "set", self.bridge, "up")
        for name, address in zip(self.names, addresses, strict=True):
            own = Path("/etc/netns") / name
            own.mkdir(parents=True)
            (own / "hosts").write_text(table)  # what ip netns exec shows as /etc/hosts
            ip("netns", "add", name)
            ip("link", "add", f"v{name}", "type", "veth", "peer", "name", f"e{name}")
            ip("link", "set", f"v{name}", "master", self.bridge, "up")
            ip("link", "set", f"e{name}", "netns", name)
            ip("-n", name, "addr", "add", f"{address}/24", "dev", f"e{name}")
            ip("-n", name, "link", "set", f"e{name}", "up")
            ip("-n", name, "link", "set", "lo", "up")
            settings = self.folder / f"{name}.conf"
            settings.write_text(SSHD.format(address=address, folder=self.folder, name=name))
            command = [*self.on(name), str(shutil.which("sshd", path=PLACES)), "-f", str(settings)]
            subprocess.run(command, check=True, timeout=20)

    def end(self) -> None:
        for name in self.names:
            self.kill(name, sshd=True)
            ip("link", "del", f"v{name}", check=False)
            ip("netns", "del", name, check=False)
            shutil.rmtree(Path("/etc/netns") / name, ignore_errors=True)
        ip("link", "del", self.bridge, check=False)

    def on(self, name: str) -> list[str]:
        """The beginning of a command that runs on a host."""
        return ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec ip netns exec "$0" "$@"', name]

    def down(self, name: str) -> None:
        ip("link", "set", f"v{name}", "down")

    def up(self) -> None:
        for name in self.names:
            ip("link", "set", f"v{name}", "up")
        here, there = self.names
        reached = [*self.on(here), "bash", "-c", f"until true 2> /dev/null < /dev/tcp/{there}/22; do sleep 0.1; done"]
        subprocess.run(reached, check=True, timeout=30, stderr=subprocess.DEVNULL)

    def carried(self) -> int:
        """The bytes that have come over the cables so far."""
        counters = [Path(f"/sys/class/net/v{name}/statistics/rx_bytes") for name in self.names]
        return sum(int(counter.read_text()) for counter in counters)

    def processes(self, name: str) -> dict[int, str]:
        """The command lines of all processes on a host but its sshd."""
        found = {}
        for pid in map(int, ip("netns", "pids", name, check=False).split()):
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if words and "sshd" not in words:
                    found[pid] = words
        return found

    def ranks(self, name: str) -> list[int]:
        return [pid for pid, words in self.processes(name).items() if words.startswith(f"{sys.executable} -m mpifed")]

    def kill(self, name: str, sshd: bool = False) -> None:
        """End all processes on a host, by force."""
        pids = [int(pid) for pid in ip("netns", "pids", name, check=False).split()] if sshd else self.processes(name)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def quiet(self, name: str, seconds: float) -> None:
        """Wait until no process is left on a host."""
        deadline = time.monotonic() + seconds
        while left := self.processes(name):
            assert time.monotonic() < deadline, left
            time.sleep(0.1)

    def launched(self, where: dict[str, int], *words: str | Path, survive: bool = False) -> subprocess.Popen[str]:
        """Start ``mpifed words`` on so many ranks of each host, from the first of them."""
        slots = ",".join(f"{name}:{ranks}" for name, ranks in where.items())
        count = str(sum(where.values()))
        mpirun = str(Path(sys.executable).parent / "mpirun")
        agent = str(self.folder / "rsh")
        network = OVER_TCP if len(where) > 1 else {}
        variables = {**os.environ, **SETTINGS, **network, "PYTHONPATH": str(ROOT), "PRTE_MCA_plm_ssh_agent": agent}
        if OPEN_MPI:
            passed = [word for name in variables if name.startswith(PASSED) for word in ("-x", name)]
            options = ["--host", slots, "--map-by", "slot:oversubscribe", "--bind-to", "none", *passed]
            options += ["--with-ft", "ulfm"] if survive else []
        else:
            options = ["-launcher", "ssh", "-launcher-exec", agent, "-hosts", slots]
        command = [*self.on(next(iter(where))), mpirun, *options, "-n", count, sys.executable, "-m", "mpifed"]
        return subprocess.Popen(
            [*command, *map(str, words)],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            start_new_session=True,
        )

    def over(self, process: subprocess.Popen[str], seconds: float = 90) -> Outcome:
        """What a launcher says when it has ended; all is killed and the test fails when that takes longer."""
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for name in self.names:
                self.kill(name)
            out, err = process.communicate()
            pytest.fail(f"it did not end within {seconds} s\n{out}\n{err}")
        return Outcome(process.returncode, out, err)

    def run(self, where: dict[str, int], *words: str | Path) -> Outcome:
        return self.over(self.launched(where, *words))


@contextmanager
def running(folder: Path) -> Iterator[Hosts]:
    """Two hosts; the tests are skipped where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("only root can emulate hosts")
    lacking = [name for name in ("ip", "ssh", "sshd") if shutil.which(name, path=PLACES) is None]
    if lacking:
        pytest.skip(f"to emulate hosts {' and '.join(lacking)} must be there: iproute2, openssh-server")
    hosts = Hosts(folder)
    try:
        try:
            hosts.start()
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no hosts can be emulated here: {error}")
        yield hosts
    finally:
        hosts.end()
