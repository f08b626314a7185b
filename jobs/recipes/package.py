# mpifed for Spack, from a clone of this repository. In the folder of a package repository of your own:
#
#   spack repo create ~/spack-mpifed mpifed
#   mkdir -p ~/spack-mpifed/spack_repo/mpifed/packages/py_mpifed
#   cp jobs/recipes/package.py ~/spack-mpifed/spack_repo/mpifed/packages/py_mpifed/
#   spack repo add ~/spack-mpifed/spack_repo/mpifed
#   spack dev-build --source-path "$PWD" py-mpifed@main
#
# Tried: a test reads this file and compares names and versions with pyproject.toml. Not tried: spack itself, but
# its collection of packages has all of these versions.
# ruff: noqa: F403, F405, I001
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyMpifed(PythonPackage):
    """Federated optimisation on an MPI cluster."""

    homepage = "file:///path/of/a/clone/of/mpifed"  # for the owner: the address of the repository
    git = "file:///path/of/a/clone/of/mpifed"

    license("MIT")

    version("main", branch="main")

    variant("plot", default=False, description="Figures and reports")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")

    with default_args(type=("build", "run")):
        depends_on("py-numpy@2.2:")
        depends_on("py-scipy@1.17:")
        depends_on("py-h5py@3.11:")
        depends_on("py-mpi4py@4.1:")
        depends_on("py-msgspec@0.19:")
        depends_on("py-threadpoolctl@3.5:")
        depends_on("py-matplotlib@3.9:", when="+plot")
        depends_on("py-plotly@6:", when="+plot")
