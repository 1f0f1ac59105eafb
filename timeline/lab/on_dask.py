"""Work on more than one machine: the same unit, carried out by the workers of a Dask cluster (extra ``dask``)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from timeline.extras import needs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor


@contextmanager
def dask_executor(cluster: Any) -> Iterator[Executor]:
    """Connect to a cluster, and give what `timeline.lab.runner.run` takes as its executor.

    Its workers need the same version of this library, and the files under the same names.

    Args:
        cluster: the address of a scheduler (``tcp://host:8786``), or a cluster of Dask's such as ``LocalCluster``.

    Raises:
        MissingExtra: ``distributed`` is not installed.
        OSError: nobody answers at that address.
    """
    with needs("distributed", "dask"):
        from distributed import Client  # noqa: PLC0415 - only who uses it pays for it
    client: Any = Client  # it has no types
    with client(cluster, set_as_default=False) as connected, connected.get_executor(pure=False) as executor:
        yield executor
