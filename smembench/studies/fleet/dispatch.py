"""Start the measurement of each device of a fleet on its host, follow its progress, and keep fleet.json up to date.

Only the thread that runs this changes the state; what Dask's threads receive goes through a queue.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from smembench.model.errors import SmembenchError
from smembench.model.interrupts import deferred, interruptible
from smembench.model.text import one_line
from smembench.run.config import Config
from smembench.store.files import refused
from smembench.store.fleet_json import FLEET, FleetFile, State, write_fleet_file
from smembench.studies.fleet.child import Job
from smembench.studies.fleet.hosts import Host
from smembench.studies.fleet.measure import INTERRUPTED, Ended, Task, measure, stop
from smembench.studies.fleet.options import Options, Watch
from smembench.studies.fleet.turns import at_once, in_turns, on_device

if TYPE_CHECKING:
    from distributed import Client, Future

_LOST = SmembenchError("the scheduler of Dask was lost; what was measured is kept")
_LOOK_SECONDS = 2.0
_STALLED_SECONDS = 60.0
"""Time that a process may be silent outside a trial: it starts, compiles and predicts."""
_BACK_SECONDS = 30.0
"""Time that a host may be without a Dask worker: a nanny starts a killed one again."""
_RESULT_SECONDS = 30.0
_STOP_SECONDS = 20.0
_MOST_STARTS = 3
"""Attempts per device's task on a host that lost all its workers."""


@dataclass(slots=True)
class _Place:
    """A host in progress: the devices of its current part, and those that have a turn still."""

    host: Host
    workers: list[str]
    open: dict[str, Future[Ended]] = field(default_factory=dict)
    turns: list[str] = field(default_factory=list)
    alone: bool = False
    gone: float | None = None
    starts: int = 1


class Dispatch:
    """A fleet in progress.

    Args:
        client: of the cluster with the hosts' workers.
        folder: the fleet's, which holds fleet.json.
        content: fleet.json, with all devices.
        config: what all devices measure.
    """

    def __init__(
        self, client: Client, folder: Path, content: FleetFile, config: Config, options: Options, watch: Watch
    ) -> None:
        self._client, self._folder, self._content = client, folder, content
        self._once, self._turn = at_once(config), in_turns(config)
        self._options, self._watch = options, watch
        self._entries = {entry.folder: entry for entry in content.devices}
        self._places: dict[str, _Place] = {}
        self._heard: Queue[Callable[[], SmembenchError | None]] = Queue()
        self._stopping = False
        # Of this attempt: a worker that was asked to stop the fleet must not refuse it when it is resumed.
        self._id = f"{content.fleet_id}-{secrets.token_hex(4)}"
        self._stalled = options.stalled or config.timeout + config.max_seconds + _STALLED_SECONDS

    def run(self, hosts: Sequence[Host]) -> SmembenchError | KeyboardInterrupt | None:
        """Measure on the hosts that answered until each device is complete or failed; returns what ended it before.

        Raises:
            SmembenchError: if fleet.json cannot be written.
        """
        error: SmembenchError | KeyboardInterrupt | None = None
        self._places = {host.name: _Place(host, list(host.workers)) for host in hosts}
        with deferred() as hold:
            self._client.subscribe_topic(self._id, lambda event: self._heard.put(partial(self._progress, event[1])))
            try:
                for place in self._places.values():
                    self._begin(place)
                self._save()
                error = self._listen()
            except KeyboardInterrupt as interrupt:
                error = interrupt
                self._stop()
            except OSError:  # of Dask's connections
                error = _LOST
            for key, entry in self._entries.items():
                if entry.state in ("waiting", "running"):
                    self._set(key, "failed", INTERRUPTED if isinstance(error, KeyboardInterrupt) else str(error))
            self._save(ended=True)
            if isinstance(error, KeyboardInterrupt):
                hold.take()  # a second Ctrl-C is the same one
        return error

    def _begin(self, place: _Place) -> None:
        """Start what all devices of a host measure at once, or the first turn if there is nothing of that."""
        waiting = (place.host.name, "waiting")
        keys = [key for key, entry in self._entries.items() if (entry.host, entry.state) == waiting]
        place.turns = list(keys) if self._turn else []
        if self._once is not None:
            for key in keys:
                self._send(place, key, self._once)
        else:
            self._next_turn(place)

    def _next_turn(self, place: _Place) -> None:
        place.alone = True
        if place.turns and self._turn is not None:
            self._send(place, place.turns.pop(0), self._turn)

    def _send(self, place: _Place, key: str, config: Config) -> None:
        entry = self._entries[key]
        job = Job(
            config=on_device(config, entry.device),
            anonymous=self._content.anonymous,
            force=self._options.force,
            argv=list(self._options.argv),
        )
        task = Task(
            fleet=self._id,
            folder=str((self._folder / key).resolve()),
            job=job.model_dump_json(),
            visible=place.host.visible,
            stalled=self._stalled,
        )
        self._set(key, "running")
        pinned = {"workers": place.workers, "allow_other_workers": False} if place.workers else {}
        future = self._client.submit(measure, task, pure=False, retries=0, **pinned)
        place.open[key] = future
        future.add_done_callback(lambda done: self._heard.put(partial(self._done, key, done)))

    def _listen(self) -> SmembenchError | None:
        looked = monotonic()
        while any(place.open for place in self._places.values()):
            with interruptible():
                take = self._next(_LOOK_SECONDS)
            if take is not None and (error := take()):
                return error
            if monotonic() - looked > _LOOK_SECONDS:
                looked = monotonic()
                if self._client.status != "running":
                    return _LOST
                self._look_for_workers()
        return None

    def _next(self, seconds: float) -> Callable[[], SmembenchError | None] | None:
        """The next message, as a call that handles it and returns an error that ends the fleet."""
        try:
            return self._heard.get(timeout=seconds)
        except Empty:
            return None

    def _done(self, key: str, future: Future[Ended]) -> SmembenchError | None:
        place = self._places[self._entries[key].host]
        if key in place.open and place.open[key] is future:  # not sent again to another worker since
            if future.status in ("cancelled", "lost"):
                return _LOST
            del place.open[key]
            self._end(place, key, _ended(future))
        return None

    def _progress(self, event: Mapping[str, Any]) -> None:
        entry = self._entries[Path(event["folder"]).name]
        self._watch.progress(entry, event["done"], event["of"], event["what"])

    def _end(self, place: _Place, key: str, ended: Ended) -> None:
        if ended.reason:
            text = ended.text and not self._content.anonymous
            self._set(key, "failed", f"{ended.reason}: {ended.text}" if text else ended.reason)
            if ended.text and not text:
                self._watch.note(f"{self._entries[key].label}: {ended.text}")
            if key in place.turns:
                place.turns.remove(key)
        elif key not in place.turns:
            self._set(key, "complete")
        self._save()
        if not place.open and place.turns and not self._stopping:
            self._next_turn(place)

    def _look_for_workers(self) -> None:
        """Send a host's devices again if its workers were lost and others came; fail them if none came."""
        if not any(place.workers and place.open for place in self._places.values()):
            return
        from distributed.comm import get_address_host

        with interruptible():
            there = self._client.nthreads()
        for place in self._places.values():
            if not place.workers or not place.open or {*place.workers} & {*there}:
                place.gone = None
                continue
            known = {get_address_host(address) for address in place.workers}
            others = [address for address in there if get_address_host(address) in known]
            if others and place.starts < _MOST_STARTS:
                place.workers, place.gone, place.starts = others, None, place.starts + 1
                self._watch.note(f"{place.host.name}: its Dask worker was lost, and is back: its devices go on")
                self._send_again(place)
            elif place.gone is None:
                place.gone = monotonic()
            elif monotonic() - place.gone > _BACK_SECONDS:
                for key in {**place.open, **dict.fromkeys(place.turns)}:
                    if future := place.open.pop(key, None):
                        future.cancel()
                    self._set(key, "failed", "the Dask worker of its host was lost")
                place.turns.clear()
                self._save()

    def _send_again(self, place: _Place) -> None:
        config = self._turn if place.alone else self._once
        assert config is not None
        for key, future in list(place.open.items()):
            self._send(place, key, config)
            future.cancel()

    def _stop(self) -> None:
        """Have all devices end after the sample in progress, and wait a little; a second Ctrl-C ends the wait."""
        self._watch.note("interrupted: the devices end after the sample in progress")
        self._stopping = True
        until = monotonic() + _STOP_SECONDS
        # In a thread: it waits for all workers, and one may hang.
        Thread(target=self._client.run, args=(stop, self._id), daemon=True).start()
        try:
            while any(place.open for place in self._places.values()) and monotonic() < until:
                with interruptible():
                    take = self._next(0.5)
                if take is not None and take():
                    return
        except KeyboardInterrupt:
            return

    def _set(self, key: str, state: State, reason: str = "") -> None:
        entry = self._entries[key].model_copy(update={"state": state, "reason": reason})
        if entry != self._entries[key]:
            self._entries[key] = entry
            self._watch.state(entry)

    def _save(self, *, ended: bool = False) -> None:
        update: dict[str, object] = {"devices": tuple(self._entries.values())}
        if ended:
            update["ended_at_utc"] = datetime.now(UTC).isoformat(timespec="seconds")
        self._content = self._content.model_copy(update=update)
        with refused(f"{self._folder / FLEET}: cannot be written", SmembenchError):
            write_fleet_file(self._folder, self._content)


def _ended(future: Future[Ended]) -> Ended:
    try:
        ended: Ended = future.result(timeout=_RESULT_SECONDS)
    except Exception as error:
        return Ended("its Dask worker failed", one_line(error))
    return ended
