"""How many pods, and how many bytes of them, the manifests of one request may become: a short one can mean very many.

In: pods that are to be made. Out: nothing, or why they are not. It counts all workloads of a request together.
"""

from underhost.schemas.errors import InputError


class Allowance:
    """`pods` and `size` (bytes of their specs) in all. A DaemonSet's pod counts for every node that it is tried on.

    Attributes:
        taken: pods so far.
    """

    def __init__(self, pods: int, size: int) -> None:
        self._most, self._size = pods, size
        self.taken = self._bytes = 0

    def take(self, pods: int) -> None:
        """So many more pods are to be made. Raises InputError where that is too much."""
        self.taken += pods
        if self.taken > self._most:
            raise InputError(f"the workloads make more than {self._most} pods together")

    def weigh(self, size: int) -> None:
        """A pod of so many bytes is made. Raises InputError where that is too much."""
        self._bytes += size
        if self._bytes > self._size:
            raise InputError(f"the pods that the workloads make take more than {self._size >> 20} MiB together")
