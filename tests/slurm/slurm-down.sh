#!/usr/bin/env bash
# End what slurm-up.sh started, by the ids that it recorded; --purge also removes its files.
set -uo pipefail
base=${SLURM_SANDBOX:-${TMPDIR:-/tmp}/mpifed-slurm}
[ "$(id -u)" = 0 ] || exec sudo -n SLURM_SANDBOX="$base" "$0" "$@"
[[ $base == /*/* ]] || exit 2
export SLURM_CONF=$base/etc/slurm.conf PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# whether process $1 is a $2 that lives: an id may be that of another process by now
lives() { [ "$(cat "/proc/$1/comm" 2> /dev/null)" = "$2" ] && ! grep -qs "^State:.Z" "/proc/$1/status"; }
end() {
    ! lives "$1" "$2" || kill "$1"
    for _ in $(seq 100); do
        lives "$1" "$2" || return 0
        sleep 0.1
    done
    kill -9 "$1"
}

if [ -f "$SLURM_CONF" ] && timeout 3 scontrol ping > /dev/null 2>&1; then
    timeout 5 squeue -h -o %A 2> /dev/null | sort -u | xargs -r timeout 10 scancel
    for _ in $(seq 75); do
        [ -n "$(timeout 2 squeue -h -t R,CG,S 2> /dev/null)" ] || break
        sleep 0.2
    done
fi
daemons=()    # read before they end, for they remove their files
for file in "$base"/run/slurmd.*.pid "$base"/run/slurmctld.pid "$base"/run/munged.pid; do
    name=${file##*/}
    [ ! -s "$file" ] || daemons+=("$(cat "$file") ${name%%.*}")
done
for daemon in ${daemons[@]+"${daemons[@]}"}; do
    read -r id name <<< "$daemon"
    end "$id" "$name"
done
rm -f "$base/shape" "$base"/run/*.pid
[ "${1:-}" != --purge ] || rm -rf -- "${base:?}"
