"""What may be given where a kernel is asked for."""

from attnflow.axes import Batched
from attnflow.checks import instance
from attnflow.kernels.base import AbstractKernel
from attnflow.kernels.exponential import Exponential


def as_kernel(kernel: AbstractKernel | Batched) -> AbstractKernel:
    """A kernel; a number is the inverse temperature of `Exponential`."""
    if isinstance(kernel, AbstractKernel):
        return kernel
    if isinstance(kernel, type):
        instance("kernel", kernel, AbstractKernel, "a kernel such as Gaussian(4.0), or beta")
    return Exponential(kernel)
