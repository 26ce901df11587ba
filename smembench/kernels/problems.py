"""What is computed: inputs, reference, tolerance, bytes and operations. One file a problem."""

from smembench.kernels.access.problem import Access
from smembench.kernels.constant.problem import Constant
from smembench.kernels.matmul.problem import Matmul
from smembench.kernels.roundtrip.problem import RoundTrip
from smembench.kernels.transfer.problem import Transfer
from smembench.kernels.transpose.problem import Transpose
from smembench.model.problem import Problem, Verification

PROBLEMS: dict[str, Problem] = {
    problem.name: problem for problem in (Transpose(), Matmul(), Access(), Constant(), Transfer(), RoundTrip())
}

__all__ = ["PROBLEMS", "Problem", "Verification"]
