#!/usr/bin/env bash
# One run of mpifed under Flux.
#
#   flux batch jobs/single.flux [study.toml] [KEY=VALUE ...] [-o out.h5]
#
# Change for your site, here or as options of flux batch:
#   --nslots       1 rank for the server plus any number for the clients (at most one per client); --nodes as you like
#   --time-limit   wall-clock limit; `python -m mpifed resume out.h5` goes on; --queue, --bank if needed
#   MPIFED_RANKS   ranks, where they are not all cores of the allocation
#   MPIFED_ENV, VENV, MPIFED_DATA   as in single.sbatch
#   MPIFED_LAUNCH  the command that starts ranks with your MPI: "flux run" (MPICH), "flux run -o pmi=pmix" (Open MPI 5)
# flux: --job-name=mpifed
# flux: --nslots=5
# flux: --cores-per-slot=1
# flux: --time-limit=1h
# flux: --output=mpifed-{{id}}.log

[ -r "${MPIFED_ENV:=/dev/null}" ] || { echo "MPIFED_ENV=$MPIFED_ENV is wrong: there is no such file" >&2 && exit 2; }
# shellcheck disable=SC1090
source "$MPIFED_ENV"    # before the next line, which the scripts of some modules do not survive
set -euo pipefail
VENV=${VENV-.venv}
# shellcheck disable=SC1091
[ ! -f "$VENV/bin/activate" ] || source "$VENV/bin/activate"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
read -ra launch <<< "${MPIFED_LAUNCH:-flux run}"

[ $# -gt 0 ] || set -- -o "mpifed-${FLUX_JOB_ID:-${FLUX_ENCLOSING_ID:-$$}}.h5"
"${launch[@]}" -n "${MPIFED_RANKS:-$(flux resource list -no '{ncores}')}" python -m mpifed run "$@"
