"""Comparison of stored runs: is anything slower than it was?"""

from smembench.studies.compare.comparison import compare_runs
from smembench.studies.compare.verdicts import CaseComparison, Comparison, Difference, Rules, Side, Verdict

__all__ = ["CaseComparison", "Comparison", "Difference", "Rules", "Side", "Verdict", "compare_runs"]
