"""``smembench show``: a stored run as tables, or in another form."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from smembench.cli.options import CASES, WHY, Outputs, one_of
from smembench.cli.output import opened
from smembench.cli.signature import argument, flag, takes
from smembench.model.errors import UsageError


@takes(outputs=Outputs)
def show(
    path: Path = argument("DIR|FILE", "A run's folder, a cases.csv, NVBench's JSON, or last.", default=...),
    *,
    tables: bool = flag("All tables; without it a run of many is summarised."),
    documents: bool = flag("Beside the documents' figures, as reproduce shows them."),
    why: bool = WHY,
    ladder: bool = flag("Only the steps of the ladders, as ladder shows them."),
    limits: bool = flag("Only the best kernel of each size, beside the ceiling and libraries."),
    compilers: bool = flag("Only kernels and their ports, as compilers shows them."),
    break_even: bool = flag("Only the size from which a GPU's kernels are faster than the CPU."),
    case: str | None = CASES,
    outputs: Outputs,
) -> None:
    """Show a stored run: its tables, or a summary if they are many.

    Interrupted runs are read from their journal.

    Examples:

      smembench show last
      smembench show results/20260101T020000Z-nightly --tables
      smembench show results/20260101T020000Z-limits --limits
      smembench show last --json
      smembench show last --case "transpose/*/4096x4096/*"
      smembench show cases.csv --export -.md
      smembench show cases.csv --export tables.tex
    """
    from smembench.explain.prediction import predictor
    from smembench.store.load import load
    from smembench.studies.choose import chosen
    from smembench.studies.reproduce.devices import devices
    from smembench.views.break_even import tables as every_table
    from smembench.views.break_even import where_it_pays
    from smembench.views.compilers import of_run
    from smembench.views.console import notes, say
    from smembench.views.export import of_run as result
    from smembench.views.ladder import ladder as steps
    from smembench.views.limits import limits as best
    from smembench.views.reproduce import records, reproduction
    from smembench.views.summary import brief

    target = opened(outputs, of_run=True)
    view = one_of(
        tables=tables, documents=documents, ladder=ladder, limits=limits, compilers=compilers, break_even=break_even
    )
    views = {
        "tables": every_table,
        "documents": lambda run: reproduction(run, why=why),
        "ladder": steps,
        "limits": best,
        "compilers": of_run,
        "break_even": where_it_pays,
    }
    if why and not documents:
        raise UsageError("--why: goes with --documents")
    run = load(path, predictor)
    if not run.complete:
        say(notes, f"{path}: the run was cut off; this is what was measured until then")
    wanted = chosen([row.case_id for row in run.rows], case)
    if wanted is not None:
        run = run.only([row for row in run.rows if row.case_id in wanted])
    if not run.rows:
        raise UsageError(f"{path}: holds no cases; name a run that measured something")
    sections = views.get(view, partial(brief, case=case))(run)
    if view and not sections:
        of_cases = "" if case is None else f" with --case {case!r}"
        raise UsageError(f"{path}{of_cases}: has nothing that --{view.replace('_', '-')} shows")
    parts = {"claims": records(devices(run))} if documents and "json" in target.forms else {}
    target.show(result(run, sections, **parts))
