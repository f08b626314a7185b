# What your site needs, in one place for all scripts of jobs/.
#
#   cp jobs/env.example.sh ~/mpifed-env.sh && edit it
#   export MPIFED_ENV=~/mpifed-env.sh                 in ~/.bashrc; sbatch, qsub -V and flux batch pass it on
#
# The scripts source this file before anything else, in bash, without `set -e` and `set -u`.
# shellcheck shell=bash disable=SC2034

# The modules: Python 3.11 or newer, and the MPI library that mpi4py is to use.
# module purge
# module load python openmpi

# The virtual environment with mpifed; VENV= (empty) where the modules or a container have it.
VENV=$HOME/mpifed/.venv

# The command that starts ranks with this MPI, followed by -n N: mpirun, "srun --mpi=pmix", "srun --mpi=pmi2".
# export MPIFED_LAUNCH="srun --mpi=pmix"

# The MPI library, where mpi4py does not find it by itself.
# export MPI4PY_LIBMPI=/opt/cray/pe/mpich/8.1.29/ofi/gnu/12.3/lib/libmpi.so

# The folder of the data sets, filled once on a login node by `python -m mpifed data get NAME --to DIR`.
# export MPIFED_DATA=$HOME/data
