"""python -m benchmarks.speed.studies --to FOLDER: what was measured once, for docs/performance.md and other pages.

Options and files are those of ``python -m benchmarks.speed``. A study stays here because a page quotes what it found,
and because it explains or predicts; nothing watches its numbers.
"""

from benchmarks.speed.sitting import LAUNCHED, Command, sit

TREE = f"--to {{to}} {LAUNCHED}"
PHISHING = "--data phishing --samples 5 --repeat 1 --methods 'newton;topk, LS, A'"
STEPS = {
    "tree": [Command("studies.tree", f"{TREE} --ranks 2 4 8 16 32", f"{TREE} --ranks 2 3 --crossing 2")],
    "predicted-sums": [Command("studies.predicted_sums", "--to {to}", "--to {to}")],
    "predict": [Command("studies.predict", f"--ranks 2 3 4 8 {LAUNCHED}", f"--quick {LAUNCHED}")],
    "ranks": [Command("studies.ranks")],
    "secondorder": [Command("studies.secondorder", LAUNCHED, PHISHING)],
    "survival": [Command("studies.survival", "", "--clients 5 --repeat 1")],
    "endurance": [Command("studies.endurance", "", "--rounds 3000")],
    "paper-times": [Command("studies.paper_times", "", "--seeds 1 --only 'V.1 FedGiA' --k0 5 --rounds 2")],
}

if __name__ == "__main__":
    sit(STEPS, __doc__)
