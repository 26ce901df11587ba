"""``smembench reproduce``: the documents' tables on this device."""

from __future__ import annotations

from smembench.cli import options
from smembench.cli.options import Running, Sampling, takes


@takes(sampling=Sampling, running=Running)
def reproduce(*, device: options.Devices = None, sampling: Sampling, running: Running) -> None:
    """Measure the documents' tables, at their sizes and blocks, beside the documents' figures.

    The last column says whether each claim (shared faster than naive, padded faster than unpadded, tiled faster than
    naive) holds here: yes or NO only if the 95 % interval of the ratio excludes 1, else undecided.

    Examples:

      smembench reproduce
      smembench reproduce --device cpu --csv documents.csv
    """
    from smembench.cli.measure import measure
    from smembench.run.config import from_flags
    from smembench.studies.reproduce.figures import sweeps
    from smembench.views.reproduce import reproduction

    config = from_flags({"name": "documents", **sampling.config(), "sweep": sweeps(device)})
    measure(config, running, draw=reproduction)
