"""Methods whose local steps a GPU takes in one launch: each derives from the method itself, and replaces its loop.

They are there for a method with the local step w ← w − γ(∇f_i(w) + c_i + μ(w − z_i)) on all samples. With other
options, and for every other method, local steps are taken one after the other.
"""
