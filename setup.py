"""The wheel has the scripts of jobs/ too, as mpifed/jobs, for `mpifed jobs`; all else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithJobs(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # there, mpifed finds jobs/ beside it
            target = Path(self.build_lib, "mpifed", "jobs")
            shutil.copytree("jobs", target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


setup(cmdclass={"build_py": WithJobs})
