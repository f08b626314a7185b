"""What a run keeps of its promises with the functions of a problem that methods call beside f and its gradient."""

from mpifed.core.promises import Keeps, Option, Options, keeping

ON_DEVICES = {Keeps.DEVICES: "{loss} does not compute with tensors on a device"}
IN_MEMORY = {Keeps.DEVICES: "{name} needs {what}, which are computed in memory alone"}

# function -> what it keeps; one that is added later is refused until it is named here
FUNCTIONS: Options = {
    # What a client computes from its own samples; whether it sends them is the method's word.
    **keeping("lipschitz", "convexity", "majorizer_inverse", "clipped_grad"),
    # Matrices are made by numpy alone, block by block.
    "hessian": Option(Keeps.EVERYTHING & ~Keeps.DEVICES, IN_MEMORY),
    "hess": Option(Keeps.EVERYTHING & ~Keeps.DEVICES, IN_MEMORY),
}
