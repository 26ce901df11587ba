"""What is computed: inputs, reference, tolerance, bytes and operations. One file a problem."""

from smembench.problems.base import Problem, Verification
from smembench.problems.matmul import Matmul
from smembench.problems.transpose import Transpose

PROBLEMS: dict[str, Problem] = {problem.name: problem for problem in (Transpose(), Matmul())}

__all__ = ["PROBLEMS", "Problem", "Verification"]
