"""What is computed: inputs, reference, tolerance, bytes and operations. One file a problem."""

from smembench.problems.access import Access
from smembench.problems.base import Problem, Verification
from smembench.problems.constant import Constant
from smembench.problems.matmul import Matmul
from smembench.problems.roundtrip import RoundTrip
from smembench.problems.transfer import Transfer
from smembench.problems.transpose import Transpose

PROBLEMS: dict[str, Problem] = {
    problem.name: problem for problem in (Transpose(), Matmul(), Access(), Constant(), Transfer(), RoundTrip())
}

__all__ = ["PROBLEMS", "Problem", "Verification"]
