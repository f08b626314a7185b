"""The promises that hold with the optional functions of a problem, which methods call beside f and its gradient."""

from mpifed.core.promises import OptionPromises, PromisesByOption, Supports, supporting

ON_DEVICES = {Supports.DEVICES: "{loss} does not compute with tensors on a device"}
IN_MEMORY = {Supports.DEVICES: "{name} needs {what}, which are computed in memory alone"}

# function -> its promises; one that is added later is refused until it is named here
FUNCTION_PROMISES: PromisesByOption = {
    # A client computes these from its own samples; whether it sends them is stated by the method.
    **supporting("lipschitz", "convexity", "majorizer_inverse", "clipped_grad"),
    # Matrices are made by numpy only, block by block.
    "hessian": OptionPromises(Supports.EVERYTHING & ~Supports.DEVICES, IN_MEMORY),
    "hess": OptionPromises(Supports.EVERYTHING & ~Supports.DEVICES, IN_MEMORY),
}
