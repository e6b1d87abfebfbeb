"""Whether an access is allowed, as far as numbers tell. Pure; the same for all drivers."""

from collections.abc import Sequence

from pondstack.domain.errors import BadRequest
from pondstack_rdma.errors import OutOfBounds
from pondstack_rdma.model import Characteristics, Operation, buffer_of

_BEYOND = 2**64


def check_bounds(offset: int, length: int, size_bytes: int) -> None:
    """Raise OutOfBounds unless the `length` bytes from `offset` on lie within a region of `size_bytes`.

    Python's integers do not overflow, so that one comparison covers offsets that would wrap around elsewhere.
    """
    if not 0 <= offset <= offset + length <= size_bytes:
        raise OutOfBounds(f"{length} bytes from {offset} on are not within a region of {size_bytes} bytes")


def check_operations(operations: Sequence[Operation], limits: Characteristics) -> list[memoryview]:
    """Return the local buffers of a batch that the driver can take.

    Raises BadRequest otherwise, with nothing done; OutOfBounds for an offset that no device could be told: the real
    bounds are the lender's to check.
    """
    if len(operations) > limits.max_batch:
        raise BadRequest(f"{limits.driver} takes {limits.max_batch} operations at once, not {len(operations)}")
    buffers = [buffer_of(operation) for operation in operations]
    sizes = [buffer.nbytes for buffer in buffers]
    if sizes and max(sizes) > limits.max_message_bytes:
        raise BadRequest(f"{limits.driver} takes {limits.max_message_bytes} bytes per operation, not {max(sizes)}")
    if sum(sizes) > limits.max_batch_bytes:
        raise BadRequest(f"{limits.driver} takes {limits.max_batch_bytes} bytes at once, not {sum(sizes)}")
    for operation in operations:
        if not -_BEYOND <= operation.offset < _BEYOND:
            raise OutOfBounds(f"offset {operation.offset:#x} is not within any region")
    return buffers
