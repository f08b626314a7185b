# The virtual environment in /tmp of each node of a SLURM job, for runs of many ranks: MPIFED_ENV of the scripts in jobs/.
#
#   tar -C .venv -cf mpifed-venv.tar .                 once, after each change of the environment
#   export MPIFED_VENV_TAR=$PWD/mpifed-venv.tar MPIFED_ENV=$PWD/jobs/recipes/node-local.sh
#
# Change: the modules of your site, as in env.example.sh. The python of the environment is that of the nodes, by its path.
# shellcheck shell=bash disable=SC2034
# module load python openmpi

VENV=''
mpifed_local=/tmp/mpifed-$SLURM_JOB_ID
mpifed_everywhere() { srun --mpi=none --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 "$@"; }
mpifed_everywhere mkdir -p "$mpifed_local" \
    && sbcast --force "${MPIFED_VENV_TAR:?is the tar file of the environment}" "$mpifed_local/venv.tar" \
    && mpifed_everywhere tar -C "$mpifed_local" -xf "$mpifed_local/venv.tar" || exit
trap 'mpifed_everywhere rm -rf "$mpifed_local"' EXIT
export PATH=$mpifed_local/bin:$PATH
