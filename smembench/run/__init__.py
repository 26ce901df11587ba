"""From a config to trials: the plan, the worker process, sampling and the stop rule.

The path of a case, from the command line to a timed launch: ``cli/problems.py`` makes a config of the options, and
``studies/run.py`` opens a session for it (``session.py``). The session's ``runner.py`` sends each trial to a process
(``worker.py``). There ``trial.py`` has the device prepare the case (``devices/cuda.py``), checks the output, and takes
samples (``sampling.py``), each of which is a replay of a graph of launches between events (``devices/cuda_graph.py``).
"""
