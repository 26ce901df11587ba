"""Comparison of stored runs, case by case: which are slower than before?"""

from smembench.studies.compare.comparison import compare_runs
from smembench.studies.compare.verdicts import CaseComparison, Comparison, Difference, Rules, Side, Verdict

__all__ = ["CaseComparison", "Comparison", "Difference", "Rules", "Side", "Verdict", "compare_runs"]
