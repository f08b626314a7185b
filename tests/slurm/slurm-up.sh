#!/usr/bin/env bash
# A real SLURM on this machine, for tests: several emulated nodes, loopback only, Debian's packages slurm-wlm and munge.
#
#   slurm-up.sh [NODES] [CPUS]      default: 2 nodes of 4 CPUs and 4 GPUs, which are made up
#   eval "$(slurm-up.sh)"           exports SLURM_CONF, which is all that sbatch, srun and squeue need
#   slurm-up.sh --install           installs the packages where they are missing, and starts nothing
#   slurm-down.sh [--purge]         ends it; --purge removes its files
#
# Needs root, or sudo without a password. Where the kernel allows it, every node has a host name of its own. Files lie in
# $SLURM_SANDBOX (default: mpifed-slurm in TMPDIR), none in /etc. Where the same cluster is up already nothing is done; another
# one is ended first. stdout has the export line alone.
set -euo pipefail
nodes=${1:-2} cpus=${2:-4}
base=${SLURM_SANDBOX:-${TMPDIR:-/tmp}/mpifed-slurm}
port=${SLURM_SANDBOX_PORT:-26817}    # of slurmctld; slurmd of node k has port + k
here=$(cd "$(dirname "$0")" && pwd)

say() { echo "slurm-up: $*" >&2; }

[ "$(id -u)" = 0 ] || exec sudo -n SLURM_SANDBOX="$base" SLURM_SANDBOX_PORT="$port" "$here/slurm-up.sh" "$@"
[[ $base == /*/* ]] || { say "SLURM_SANDBOX must be an absolute path, two folders deep"; exit 2; }
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
if ! { command -v slurmctld && command -v slurmd && command -v munged; } > /dev/null; then
    [ "${1:-}" = --install ] || { say "SLURM and munge are missing: $here/slurm-up.sh --install installs them"; exit 2; }
    command -v apt-get > /dev/null || { say "install SLURM and munge: there is no apt-get here"; exit 2; }
    say "installing slurm-wlm and munge"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 || true
    apt-get install -y -qq --no-install-recommends slurm-wlm munge libpmix2 >&2
fi
# Debian's plugin mpi/pmix opens libpmix.so, which is in libpmix-dev alone
pmix=/usr/lib/$(uname -m)-linux-gnu/pmix2/lib
[ ! -e "$pmix/libpmix.so.2" ] || [ -e "$pmix/libpmix.so" ] || ln -s libpmix.so.2 "$pmix/libpmix.so"
[ "${1:-}" != --install ] || exit 0

export SLURM_CONF=$base/etc/slurm.conf
shape="$nodes x $cpus @ $port"
healthy() {
    [ "$(cat "$base/shape" 2> /dev/null)" = "$shape" ] && timeout 5 scontrol ping 2> /dev/null | grep -q "is UP" \
        && [ "$(timeout 5 sinfo -h -N -o %t 2> /dev/null | grep -cE '^(idle|mix|alloc|comp)$')" = "$nodes" ]
}
if healthy; then
    say "already up: $shape"
    echo "export SLURM_CONF=$SLURM_CONF"
    exit 0
fi
"$here/slurm-down.sh" >&2

mkdir -p "$base"/{etc,log,state,spool,run,munge,socket}
chmod 0711 "$base"
chmod 0755 "$base/socket"
chmod 0700 "$base/munge"
[ -s "$base/munge/key" ] || (umask 0277 && head -c 1024 /dev/urandom > "$base/munge/key")

host=$(hostname -s)
own=''
unshare --uts --mount true 2> /dev/null && own=yes
cat > "$SLURM_CONF" << END
ClusterName=sandbox
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# a job that is put back into the queue waits until its credential has expired
AuthInfo=socket=$base/socket/munge.socket,cred_expire=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$base/state
SlurmdSpoolDir=$base/spool/%n
# the nodes' plugins mpi/pmix would meet in one /tmp
TmpFS=$base/tmp/%n
SlurmctldPidFile=$base/run/slurmctld.pid
SlurmdPidFile=$base/run/slurmd.%n.pid
SlurmctldLogFile=$base/log/slurmctld.log
SlurmdLogFile=$base/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=bf_interval=5,sched_interval=5,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
GresTypes=gpu
KillWait=10
MinJobAge=3600
SlurmdTimeout=60
PropagateResourceLimits=NONE
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
mkdir -p "$base/gpu"
touch "$base"/gpu/nvidia{0..3}
echo "Name=gpu File=$base/gpu/nvidia[0-3]" > "$base/etc/gres.conf"
cp /etc/hosts "$base/etc/hosts"
for k in $(seq "$nodes"); do
    name=$host
    [ -z "$own" ] || name=node$k
    echo "NodeName=node$k NodeHostname=$name NodeAddr=127.0.0.1 Port=$((port + k)) CPUs=$cpus RealMemory=65536 Gres=gpu:4" >> "$SLURM_CONF"
    echo "127.0.0.1 node$k" >> "$base/etc/hosts"
    mkdir -p "$base/spool/node$k" "$base/tmp/node$k"
    chmod 1777 "$base/tmp/node$k"
done

munged --force --key-file="$base/munge/key" --socket="$base/socket/munge.socket" --pid-file="$base/run/munged.pid" \
    --log-file="$base/log/munged.log" --seed-file="$base/munge/seed"
slurmctld >&2
for k in $(seq "$nodes"); do
    if [ -n "$own" ]; then
        # shellcheck disable=SC2016
        unshare --uts --mount sh -c 'mount --bind "$1/etc/hosts" /etc/hosts && hostname "$2" && exec slurmd -N "$2"' \
            sh "$base" "node$k" >&2
    else
        slurmd -N "node$k" >&2
    fi
done
echo "$shape" > "$base/shape"
for _ in $(seq 150); do
    if healthy; then
        say "up: $shape"
        echo "export SLURM_CONF=$SLURM_CONF"
        exit 0
    fi
    sleep 0.2
done
say "did not come up:"
tail -n 20 "$base"/log/*.log >&2
exit 1
