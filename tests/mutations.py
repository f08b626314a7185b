"""Lines of the package that are made wrong one at a time, each with the test that then fails.

python -m tests.mutations                # all of them, in copies of the package: what lives is listed, exit 1
python -m tests.mutations scaffold       # those of files whose name contains this
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LONGEST = 300.0  # seconds in which a test has to say so


class Mutation(NamedTuple):
    """A file of the package, the text in it and what takes its place, and the tests that fail: a file and its -k."""

    file: str
    old: str
    new: str
    tests: str
    named: str


MUTATIONS = [
    Mutation(
        "features/robust/averaging.py",
        "self.before = arrays.get(BEFORE, self.before)",
        "pass",
        "features/attack/test_attacks.py",
        "clipping_goes_on_from_its_last_mean",
    ),
    Mutation(
        "federation/server.py",
        "(len(clients) if self.counts is None else float(self.counts[clients].sum())) / self.m",
        "len(clients) / self.m",
        "features/client_weights/test_client_weights.py",
        "control_variates_of_some_clients",
    ),
    Mutation(
        "federation/server.py",
        "return recentred(self.mean(of=of, weights=own), 1.0 - float(own.mean()), around)",
        "return self.mean(of=of, weights=own)",
        "features/selection_laws/test_importance.py",
        "where_all_uploads_are_alike",
    ),
    Mutation(
        "federation/server.py",
        "1.0 - float(own.mean())",
        "1.0 - float(own.sum())",
        "features/selection_laws/test_importance.py",
        "where_all_uploads_are_alike or corrected",
    ),
    Mutation(
        "core/discrete_noise.py",
        "* (1 + 1e-9)) + 2 * n",
        "* (1 + 1e-9)) + n",
        "core/test_streams.py",
        "rows_that_errors",
    ),
    Mutation(
        "features/compression/stages.py",
        "start = self.setup.start if x.shape == self.setup.start.shape else np.zeros_like(x)",
        "start = np.zeros_like(x)",
        "features/compression/test_stages.py",
        "clients_know_the_model",
    ),
    Mutation(
        "features/penalty/ending.py",
        "if self.fed.round == 0:",
        "if self.fed.round == -1:",
        "federation/test_penalty.py",
        "the_model_that_a_run_starts_from",
    ),
    Mutation("federation/ids.py", "None if weights is None else weights[order]", "weights", "contract/test_ids.py", ""),
    Mutation("federation/sums.py", "    total += 0.0\n", "", "federation/test_sums.py", "sum_of_zeros"),
    Mutation(
        "federation/sums.py",
        "math.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())",
        "math.isfinite(flat.dot(flat))",
        "federation/test_sums.py",
        "squares_overflow",
    ),
    Mutation(
        "algorithms/scaffold.py",
        "f.xp.where(total > 0, client.c - c + (x - y) / f.xp.where(total > 0, total, 1.0), client.c)",
        "client.c - c + (x - y) / f.xp.where(total > 0, total, 1.0)",
        "algorithms/test_averaging.py",
        "schedule_that_comes_down_to_zero",
    ),
    Mutation(
        "features/attack/attacks.py",
        "max((honest + attackers) // 2 + 1 - attackers, 1)",
        "(honest + attackers) // 2 + 1 - attackers",
        "features/attack/test_attacks.py",
        "majority",
    ),
    Mutation(
        "features/simulated_time/device_rounds.py",
        "steps -= (idle + steps * step > self.system.deadline) & (steps > 1) & (steps < every)",
        "pass",
        "features/simulated_time/test_device_rounds.py",
        "after_the_deadline_by_rounding_alone",
    ),
    Mutation(
        "features/simulated_time/device_rounds.py",
        "0.0 if late.any() else 0.0",
        "0.0 if gone.any() or late.any() else 0.0",
        "features/simulated_time/test_device_rounds.py",
        "does_not_wait_for_the_deadline",
    ),
    Mutation(
        "features/unseen/feature.py",
        "max(1, round(amount * m)) if amount < 1",
        "round(amount * m) if amount < 1",
        "features/unseen/test_unseen.py",
        "share_is_rounded",
    ),
    Mutation(
        "features/unseen/feature.py",
        "if amount < 1 else",
        "if amount <= 1 else",
        "features/unseen/test_unseen.py",
        "share_is_rounded",
    ),
    Mutation(
        "features/simulated_time/devices.py",
        "count / n * -(-C.bits(n, size) // 8)",
        "-(-C.bits(n, size) // 8)",
        "features/compression/test_stages.py",
        "simulated_time_follows_the_bytes",
    ),
]


def lives(mutation: Mutation) -> str:
    """Why a mutation is not found by its test; empty where it is."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("mpifed", "tests", "docs", "benchmarks", "pyproject.toml", "README.md"):
            source = ROOT / name
            target = Path(folder, name)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        path = Path(folder, "mpifed", mutation.file)
        text = path.read_text("utf-8")
        if mutation.old not in text:
            return "its text is no longer there"
        test = ["-q", "-n", "0", "-p", "no:cacheprovider", f"tests/{mutation.tests}", "-k", mutation.named]
        for changed, right in ((text, 0), (text.replace(mutation.old, mutation.new, 1), 1)):
            path.write_text(changed, "utf-8")
            env = os.environ | {"PYTHONPATH": folder}
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *test], cwd=folder, env=env, capture_output=True, timeout=LONGEST
            )
            if done.returncode != right:
                return "the test passes with it" if right else "the test fails without it"
    return ""


def main(names: list[str]) -> int:
    wanted = [one for one in MUTATIONS if not names or any(name in one.file for name in names)]
    alive = 0
    for one in wanted:
        why = lives(one)
        alive += bool(why)
        print(f"{why or 'found'}: {one.file}: {one.old.strip()}", flush=True)
    print(f"{len(wanted)} mutations, {alive} not found by their tests")
    return int(alive > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
