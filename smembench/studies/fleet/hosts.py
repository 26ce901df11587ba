"""The devices of a host, listed by a process of its own: a driver that hangs or crashes takes only that with it."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from smembench.devices.select import CPU
from smembench.model.child import captured, child_command
from smembench.model.text import visible
from smembench.run.pseudonym import pseudonym
from smembench.store.fleet_json import FLEET, Entry

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Host:
    """A host's description of itself.

    Attributes:
        name: its name, or a pseudonym.
        devices: what can be measured there, and with a reason what cannot; ``plan.entries_of`` adds what a fleet gives
            them.
        visible: its CUDA_VISIBLE_DEVICES, which every process there is started with: Dask's workers on a host may
            differ in it, and cuda:0 would be another GPU for each.
        boot: distinguishes two machines of the same name; it is not stored.
        workers: addresses of its Dask workers.
    """

    name: str
    devices: tuple[Entry, ...] = ()
    visible: str | None = None
    boot: str = ""
    workers: tuple[str, ...] = ()


def ask_host(folder: str, devices: Sequence[str], anonymous: bool, limit: float) -> Host:
    """This host's name and devices: those named, without names all GPUs. Runs on the host, as a task of Dask.

    ``folder`` is the fleet's, which must be there on each host, "" on this one; ``limit`` is in seconds.
    """
    node = platform.node()
    name = (pseudonym(node) or "anonymous") if anonymous else node
    host = Host(name, (), os.environ.get(VISIBLE), _boot())
    if folder and not (Path(folder) / FLEET).exists():
        reason = "the fleet's folder is not there on this host: give an --output that all hosts share"
        return replace(host, devices=(Entry(host=name, reason=reason),))
    if list(devices) == [CPU]:
        return replace(host, devices=(Entry(host=name, device=CPU),))
    listed, reason = _list_gpus(limit)
    known = {gpu["device"]: Entry(host=name, **gpu) for gpu in listed}
    chosen = [known.get(device, Entry(host=name, device=device)) for device in devices or known]
    if anonymous:
        chosen = [gpu.model_copy(update={"uuid": pseudonym(gpu.uuid or "")}) for gpu in chosen]
        reason = reason and "no GPU was found"
    return replace(host, devices=tuple(chosen) or (Entry(host=name, reason=reason),))


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    return ""


def _list_gpus(limit: float) -> tuple[list[dict[str, Any]], str]:
    """The GPUs that CUDA lists here, as fields of an ``Entry``, and why there are none."""
    try:
        done = captured(child_command(__name__), timeout=limit)
        listing = json.loads(done.stdout)
    except TimeoutExpired:
        return [], f"CUDA does not list its GPUs within {limit:g} s"
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return [], f"the GPUs cannot be listed: {visible(last)}"
    return listing["gpus"], listing["reason"]


def main() -> None:
    """Print the GPUs of this host as JSON; no context is created on any.

    Where all GPUs are to be seen, those that the driver has lost are rows, too.
    """
    from smembench.devices.cuda_description import gpu_count, gpu_info, why_unusable
    from smembench.devices.nvml import lost_gpus

    infos = [info for index in range(gpu_count()) if (info := gpu_info(index))]
    gpus = [{"device": info.name, "uuid": info.uuid, "model": info.model} for info in infos]
    if VISIBLE not in os.environ:
        gpus += [{"device": f"nvml:{index}", "reason": f"the driver: {error}"} for index, error in lost_gpus().items()]
    sys.stdout.write(json.dumps({"gpus": gpus, "reason": why_unusable() or ""}))


if __name__ == "__main__":
    main()
