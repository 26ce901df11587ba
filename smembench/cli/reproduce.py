"""``smembench reproduce``: the documents' tables and claims on this device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smembench.cli import options
from smembench.cli.options import Running, Sampling
from smembench.cli.signature import takes

if TYPE_CHECKING:
    from smembench.store.run import Run
    from smembench.studies.reproduce.measures import Here
    from smembench.views.sections import Section


@takes(sampling=Sampling, running=Running)
def reproduce(*, device: options.Devices = None, sampling: Sampling, running: Running) -> None:
    """Measure what the documents measured, and say of each of their claims whether it holds here.

    First their tables, at their sizes, beside this device's figures; then every claim with a number or a comparison:
    where it stands, what it says, and what was found here with its 95 % interval. "yes" and "no" mean that the whole
    interval lies where the claim wants it, or none of it, "not any more" that it held on the document's own devices.

    Without a GPU the CPU measures what it can, and the rest is shown from the stored run of a GPU, in a checkout.
    To store a run: smembench run documents; to see it again: smembench show last --documents.

    Examples:

      smembench reproduce
      smembench reproduce --quick --export claims.md
      smembench reproduce --json | jq '.claims[] | select(.holds != "yes")'
      smembench reproduce --device cpu --export documents.csv
    """
    from smembench.cli.measure import measure
    from smembench.run.config import from_toml
    from smembench.studies.reproduce.devices import probed, reference
    from smembench.views.reproduce import records, reproduction

    overrides = [] if device is None else [f"device={device}"]
    config = from_toml(Path("documents"), overrides, sampling.config())
    stored = reference()
    judged: list[Here] = []

    def draw(run: Run) -> list[Section]:
        judged.extend(probed(run))
        return reproduction(run, judged, stored)

    measure(config, running, draw=draw, parts=lambda: {"claims": records(judged, stored)})
