"""python -m benchmarks.speed --to FOLDER: the measurements that docs/performance.md repeats at every change.

Each program runs in a process of its own. What it prints is shown, and kept in FOLDER/<name>.txt below its command;
pictures and tables go to FOLDER/<name>/. FOLDER/machine.txt describes the machine, which should have nothing else to
do. This and the studies take about half an hour together on two cores. --quick takes smaller sizes and single
repetitions, which show that everything runs, not how fast it is. A program that fails is told at the end, and the
others run nevertheless. Rounds on a GPU are left out where there is none, and other simulators need environments of
their own: ``python -m benchmarks.speed.peers``.

What was measured once is in ``python -m benchmarks.speed.studies``.
"""

from benchmarks.speed.sitting import LAUNCHED, Command, sit

SCALING = f"--to {{to}} {LAUNCHED}"
FEW = "--ranks 1,2 --rounds 5 --repeat 1"
STEPS = {
    "rounds": [Command("rounds", "--busy --repeat 3 --kernels both", "--busy --rounds 4 --repeat 1 --dtypes float32")],
    "kernels": [
        Command(
            "kernels",
            "--busy --kernels both --shapes wide,small,sparse --problems logistic,softmax",
            "--busy --shapes small --dtypes float32 --problems logistic --repeat 1 --least 0",
        )
    ],
    "roofline": [
        Command("roofline", "--busy --to {to}", "--busy --to {to} --dtypes float32 --repeat 1 --least 0.01 --most 1e8")
    ],
    "local": [Command("local", "", "--rounds 10 --repeat 1 --sizes small")],
    "networks": [Command("networks", "--busy", "--busy --tiny --rounds 2 --repeat 1 --cases MLP")],
    "gpu_networks": [Command("gpu_networks", "", "--device cpu --tiny --rounds 2 --repeat 1")],
    "collectives": [Command("collectives", "", "--most 1000", ranks) for ranks in (2, 3, 4)],
    "scaling-A": [Command("scaling", f"--case A --ranks 1,2,3,4 {SCALING}", f"--case A {FEW} {SCALING}")],
    "scaling-B": [Command("scaling", f"--case B --ranks 1,2,3,4 {SCALING}", f"--case B {FEW} {SCALING}")],
    "apart": [
        Command("apart", f"--case {case} {LAUNCHED}", f"--case {case} --rounds 5 --repeat 1 {LAUNCHED}")
        for case in "AB"
    ],
    "picking": [Command("picking", "", "--clients 1e3,1e4 --rounds 5")],
    "startup": [Command("startup", LAUNCHED, f"--repeat 1 {LAUNCHED}")],
    "flute": [Command("flute", "", "--repeat 1 --rounds 2")],
    "memory": [
        Command("memory", "", "--clients 1e3 --repeat 1"),
        Command("memory_table", "", "--scale 0.01 --only numpy"),
    ],
}

if __name__ == "__main__":
    sit(STEPS, __doc__)
